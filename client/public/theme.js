// Before the first paint, so that a chosen theme does not flash. See src/store/theme.ts.
try {
  const theme = localStorage.getItem('baton-theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {
  // Storage may be forbidden; the system's theme is right then.
}
