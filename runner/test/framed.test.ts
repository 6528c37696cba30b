import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { frame, unframe } from '../src/files/framed.ts'

const MAGIC = 'BATONXX1'
const header = { name: 'ä', count: 3 }
const body = [Uint8Array.of(1, 2, 3), new Uint8Array(), Uint8Array.of(255)]
const file = frame(MAGIC, header, ...body)

test('the bytes are magic, length, header, body, hash', () => {
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.from([json.length, 0, 0, 0])
  const content = Buffer.concat([Buffer.from(MAGIC), length, json, ...body])
  const hash = createHash('sha256').update(content).digest()
  expect(Buffer.from(file).equals(Buffer.concat([content, hash]))).toBe(true)
})

test('what was framed comes back, wherever it lies in memory', () => {
  const shifted = new Uint8Array(file.length + 9)
  shifted.set(file, 5)
  for (const bytes of [file, shifted.subarray(5, 5 + file.length)])
    expect(unframe(MAGIC, bytes)).toEqual({ is: 'whole', header, body: Buffer.from([1, 2, 3, 255]) })
  expect(unframe(MAGIC, frame(MAGIC, null))).toEqual({ is: 'whole', header: null, body: Buffer.alloc(0) })
})

test('every change of a byte, and every cut, is told: foreign, another version, or torn', () => {
  for (let at = 0; at < file.length; at++) {
    const changed = Uint8Array.from(file)
    changed[at]! ^= 0x55
    expect(unframe(MAGIC, changed).is).toBe(at < 7 ? 'foreign' : at === 7 ? 'other-version' : 'torn')
    expect(unframe(MAGIC, file.subarray(0, at)).is).toBe('torn')
  }
  expect(unframe(MAGIC, Buffer.concat([file, file])).is).toBe('torn')
  expect(unframe('BATONXX2', file)).toEqual({ is: 'other-version', format: MAGIC })
  expect(unframe('BATONYY1', file)).toEqual({ is: 'foreign' })
})

test('a header that is none is torn, whatever its hash', () => {
  const content = Buffer.concat([Buffer.from(MAGIC), Buffer.from([3, 0, 0, 0]), Buffer.from('{"a')])
  const whole = Buffer.concat([content, createHash('sha256').update(content).digest()])
  expect(unframe(MAGIC, whole)).toEqual({ is: 'torn', why: 'its header can not be read' })
})
