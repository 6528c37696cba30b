import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App.tsx'
import { enter } from './entrance.ts'
import { followKeyboard } from './parts/keyboard.ts'
import { startRouter } from './router.ts'
import { startTheme } from './store/theme.ts'
import './styles/tokens.css'
import './styles/base.css'
import './styles/app.css'
import './styles/cards.css'
import './styles/pair.css'
import './styles/sessions.css'
import './styles/session.css'
import './styles/transcript.css'
import './styles/foot.css'
import './styles/prose.css'
import './styles/sheet.css'

startTheme()
followKeyboard()
startRouter()
void enter()

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  )
}
