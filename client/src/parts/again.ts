import { createContext } from 'react'

/** Has the agent go on after an error; undefined where that makes no sense. */
export const AgainContext = createContext<(() => void) | undefined>(undefined)
