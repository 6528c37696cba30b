import { createContext } from 'react'

/** The session whose blobs the parts fetch. */
export const SidContext = createContext('')
