/**
 * What lies dead in guest memory: free blocks of the two allocators, and the stack below its pointer. It keeps the bytes of what was
 * there, which compress badly. A guest that rests for long is saved without them: there they are as in the baseline again.
 *
 * No program reads what it has given up, so that a guest goes on from there just as well (I7). Which bytes are dead is read from the
 * allocators' own lists, never guessed; where anything of them is not as described here, all bytes count as alive.
 *
 *     dlmalloc, the C library's: chunks one after the other up to the end of memory.
 *       u32 size of the chunk before, when that is free   u32 own size | 1 the one before is used | 2 this one is used   data
 *       A free one keeps its links there: 8 bytes, from 256 bytes on 24.
 *     QuickJS', in chunks of about 4 KiB: arenas, each of blocks of one of 31 sizes, in a list for each size.
 *       links of the free list   links of the list, 8 bytes each: the one before, the next   u8 which size   -   u16 used blocks
 *       u16 blocks   u16 first free block, or 0xffff   blocks
 *       A block: u16 its own number, or when it is free that of the next free one   u8 which size   u8 -   u32 -   data
 */
import { Instance } from './instance.ts'

export interface MemoryLayout {
  /** Address of the first chunk. */
  heap: number
  /** The stack lies below everything else, so that what is below its pointer is dead. */
  stackFirst: boolean
}

const layouts = new WeakMap<WebAssembly.Module, MemoryLayout>()

/** Asked of an instance of its own. */
export function layoutOf(module: WebAssembly.Module): MemoryLayout {
  const known = layouts.get(module)
  if (known) return known
  const instance = new Instance(module, {
    interrupt: () => {
      instance.exports.baton_fuel.value = 1_000_000
    },
    call: () => 0,
    now: () => 0,
  })
  const first = instance.bytes().findIndex((byte) => byte !== 0)
  const stack = instance.exports.__stack_pointer.value
  const layout = { heap: instance.exports.wasm_malloc(1) - CHUNK_HEAD, stackFirst: first >= stack }
  layouts.set(module, layout)
  return layout
}

const CHUNK_HEAD = 8
const CHUNK_MIN = 16
const BEFORE_USED = 1
const USED = 2
/** From this size on a free chunk has more links. */
const TREE_BYTES = 256
const ARENA_HEAD = 24
const BLOCK_HEAD = 8
const NO_BLOCK = 0xffff
/** By the number of the size: steps of 8 bytes, then 16, then 32. */
const BLOCK_BYTES = [
  ...[16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128],
  ...[144, 160, 176, 192, 208, 224, 240, 256],
  ...[288, 320, 352, 384, 416, 448, 480, 512],
]

type Span = [from: number, to: number]

/** Memory is not as it is described above. */
class Unknown extends Error {}

/**
 * Makes what is dead in `memory` as it is in the baseline. The guest must not be in the middle of anything but a call of the host.
 * Returns how many bytes are dead; 0, and nothing is touched, when the engine's memory is laid out in a way that is not known here.
 */
export function forgetDead(
  memory: Uint8Array,
  { baseline, layout, stack }: { baseline: Uint8Array; layout: MemoryLayout; stack: number },
): number {
  let dead: Span[]
  try {
    const chunks = new Chunks(memory, layout.heap)
    const lists = arenaLists(new Chunks(baseline, layout.heap))
    const arenas = lists === undefined ? [] : arenasOf(chunks, lists)
    dead = [...chunks.free(), ...arenas.flatMap((arena) => freeBlocks(chunks, arena) ?? fail())]
  } catch (error) {
    if (error instanceof Unknown) return 0
    throw error
  }
  if (layout.stackFirst) dead.push([0, stack])
  let bytes = 0
  for (const [from, to] of dead) {
    const known = baseline.subarray(from, to)
    memory.set(known, from)
    memory.fill(0, from + known.length, to)
    bytes += to - from
  }
  return bytes
}

function fail(): never {
  throw new Unknown()
}

/** All of the heap, chunk by chunk. */
class Chunks {
  readonly bytes: Uint8Array
  readonly #words: Uint32Array
  readonly #halves: Uint16Array
  /** Address of the data of each used chunk → where it ends. */
  readonly used = new Map<number, number>()
  readonly #free: Span[] = []

  /** Throws Unknown unless they lead from the first to the very end. */
  constructor(bytes: Uint8Array, heap: number) {
    this.bytes = bytes
    this.#words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2)
    this.#halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length >> 1)
    let at = heap
    let isBeforeUsed = true
    while (at < bytes.length) {
      const head = this.word(at + 4)
      const size = head & ~7
      const end = at + size
      if (size < CHUNK_MIN || end > bytes.length || Boolean(head & BEFORE_USED) !== isBeforeUsed) fail()
      isBeforeUsed = Boolean(head & USED)
      if (isBeforeUsed) this.used.set(at + CHUNK_HEAD, end)
      // The very last one only marks the end.
      else if (end < bytes.length) this.#free.push([at + CHUNK_HEAD + (size < TREE_BYTES ? 8 : 24), end])
      at = end
    }
    if (at !== bytes.length) fail()
  }

  word(at: number): number {
    return this.#words[at >> 2] ?? fail()
  }

  half(at: number): number {
    return this.#halves[at >> 1] ?? fail()
  }

  /** What is dead of free chunks. */
  free(): Span[] {
    return this.#free.filter(([from, to]) => from < to)
  }
}

/** Where the lists of arenas begin: eight bytes for each size. Undefined: there is no arena. */
function arenaLists(chunks: Chunks): number | undefined {
  const arenas = new Set([...chunks.used.keys()].filter((at) => freeBlocks(chunks, at)))
  let lists: number | undefined
  for (const arena of arenas) {
    let link = arena + 8
    for (let n = 0; arenas.has(link - 8); n++) {
      if (n > arenas.size) fail()
      link = chunks.word(link + 4)
    }
    const begin = link - 8 * (chunks.bytes[arena + 16] ?? 0)
    if ((lists ?? begin) !== begin) fail()
    lists = begin
  }
  return lists
}

function arenasOf(chunks: Chunks, lists: number): number[] {
  const arenas: number[] = []
  for (const size of BLOCK_BYTES.keys()) {
    const head = lists + 8 * size
    let last = head
    for (let link = chunks.word(head + 4); link !== head; link = chunks.word(link + 4)) {
      const arena = link - 8
      const isNext = chunks.word(link) === last && chunks.bytes[arena + 16] === size
      if (!isNext || !chunks.used.has(arena)) fail()
      arenas.push(arena)
      last = link
    }
  }
  return arenas
}

/** What is dead of an arena; undefined when it is none, in any detail. */
function freeBlocks(chunks: Chunks, arena: number): Span[] | undefined {
  const end = chunks.used.get(arena) ?? 0
  if (end - arena < ARENA_HEAD) return undefined
  const size = chunks.bytes[arena + 16] ?? NO_BLOCK
  const [used, count, first] = [chunks.half(arena + 18), chunks.half(arena + 20), chunks.half(arena + 22)]
  const bytes = BLOCK_BYTES[size]
  const blocks = arena + ARENA_HEAD
  if (bytes === undefined || count === 0 || used > count || blocks + count * bytes > end) return undefined
  const free = new Set<number>()
  for (let n = first; n !== NO_BLOCK; n = chunks.half(blocks + n * bytes)) {
    if (n >= count || free.has(n)) return undefined
    free.add(n)
  }
  if (free.size !== count - used) return undefined
  for (let n = 0; n < count; n++) {
    const at = blocks + n * bytes
    if (chunks.bytes[at + 2] !== size || (!free.has(n) && chunks.half(at) !== n)) return undefined
  }
  return Array.from(free, (n) => [blocks + n * bytes + BLOCK_HEAD, blocks + (n + 1) * bytes])
}
