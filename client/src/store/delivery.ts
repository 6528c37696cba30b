/** What may become of a prompt while the agent works. Chosen for one prompt; without a choice it queues. */
export type Delivery = 'queue' | 'steer'

export const DELIVERIES: readonly { delivery: Delivery; name: 'Queue' | 'Steer'; means: string }[] = [
  { delivery: 'queue', name: 'Queue', means: 'Waits for the end of the turn' },
  { delivery: 'steer', name: 'Steer', means: 'Reaches the agent at its next step' },
]
