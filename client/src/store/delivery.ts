/** What becomes of a prompt while the agent works: the person's last choice, remembered on this device. */
import { Cell } from './cell.ts'

export type Delivery = 'queue' | 'steer'

const KEY = 'baton-delivery'

export const DELIVERIES: readonly { delivery: Delivery; name: 'Queue' | 'Steer'; means: string }[] = [
  { delivery: 'queue', name: 'Queue', means: 'Waits for the end of the turn' },
  { delivery: 'steer', name: 'Steer', means: 'Reaches the agent at its next step' },
]

function stored(): Delivery {
  try {
    return localStorage.getItem(KEY) === 'steer' ? 'steer' : 'queue'
  } catch {
    return 'queue'
  }
}

export const delivery = new Cell<Delivery>(typeof window === 'undefined' ? 'queue' : stored())

export function chooseDelivery(value: Delivery): void {
  delivery.set(value)
  try {
    localStorage.setItem(KEY, value)
  } catch {
    // It holds until the reload.
  }
}
