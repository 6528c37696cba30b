import type { RelayFrame } from '@baton/shared/protocol.ts'
import { expect, test } from 'vitest'
import type { Context } from '../src/context.ts'
import { SignedIn, type Outlet } from '../src/peer.ts'

const change = (n: number): RelayFrame => ({ t: 'pong', n })

function peerForTest(): { peer: SignedIn; sent: unknown[] } {
  const sent: unknown[] = []
  const outlet: Outlet = {
    send: (frame) => sent.push(frame),
    offhand: () => undefined,
    deliver: () => Promise.resolve(),
    revoked: () => undefined,
  }
  const peer = new SignedIn({} as Context, { account: 'account', device: 'device' }, outlet)
  return { peer, sent }
}

test('S6: changes are told from the list on; what changes while it is being read is told after it', async () => {
  const { peer, sent } = peerForTest()
  peer.change(change(1))
  const answered = peer
    .listWhile(() => {
      peer.change(change(2))
      return Promise.resolve('the list')
    })
    .then((list) => sent.push(list))
  peer.change(change(3))
  await answered
  await new Promise((resume) => setImmediate(resume))
  peer.change(change(4))
  expect(sent).toEqual(['the list', change(2), change(3), change(4)])
})

test('S6: a list that could not be read leaves everything as it was', async () => {
  const { peer, sent } = peerForTest()
  await expect(peer.listWhile(() => Promise.reject(new Error('away')))).rejects.toThrow('away')
  peer.change(change(1))
  expect(sent).toEqual([])
  await peer.listWhile(() => Promise.resolve())
  await new Promise((resume) => setImmediate(resume))
  const failed = peer.listWhile(() => Promise.reject(new Error('away')))
  peer.change(change(2))
  await expect(failed).rejects.toThrow('away')
  peer.change(change(3))
  expect(sent).toEqual([change(2), change(3)])
})
