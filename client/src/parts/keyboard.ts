/**
 * Keeps the app inside what the on-screen keyboard leaves (F62). Where the browser honours `interactive-widget` this changes
 * nothing; Safari instead shrinks and shifts only the visual viewport.
 */
export function followKeyboard(): void {
  const view = window.visualViewport
  if (!view) return
  const { style } = document.documentElement
  const follow = (): void => {
    // Zoomed by hand: leave the layout alone.
    if (view.scale > 1.01) return
    style.setProperty('--view-height', `${view.height}px`)
    style.setProperty('--view-top', `${view.offsetTop}px`)
  }
  view.addEventListener('resize', follow)
  view.addEventListener('scroll', follow)
  follow()
}
