/** What this device calls itself, from what the browser tells. */
export function guessDeviceName(agent: string): { name: string; kind: 'phone' | 'browser' } {
  const [system, phone] = /iPhone/.test(agent)
    ? (['iPhone', true] as const)
    : /iPad/.test(agent)
      ? (['iPad', true] as const)
      : /Android/.test(agent)
        ? (['Android', true] as const)
        : /Mac OS X/.test(agent)
          ? (['Mac', false] as const)
          : /Windows/.test(agent)
            ? (['Windows', false] as const)
            : /Linux|CrOS/.test(agent)
              ? (['Linux', false] as const)
              : (['', false] as const)
  const browser = /Firefox|FxiOS/.test(agent)
    ? 'Firefox'
    : /Edg/.test(agent)
      ? 'Edge'
      : /Chrome|CriOS/.test(agent)
        ? 'Chrome'
        : /Safari/.test(agent)
          ? 'Safari'
          : 'Browser'
  const name = phone ? system : system === '' ? browser : `${browser} on ${system}`
  return { name, kind: phone ? 'phone' : 'browser' }
}
