import react from '@vitejs/plugin-react'
import { gzipSync } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'
import { VitePWA } from 'vite-plugin-pwa'

const RELAY = 'http://127.0.0.1:7788'
const FIRST_LOAD_KB_MAX = 120

/** Prints what the first visit loads: the entry and everything that it imports statically. Fails above the budget. */
function firstLoad(): Plugin {
  return {
    name: 'first-load',
    apply: 'build',
    generateBundle(_options, bundle) {
      const wanted = Object.values(bundle)
        .filter((file) => file.type === 'chunk' && file.isEntry)
        .map((file) => file.fileName)
      for (const name of wanted) {
        const file = bundle[name]
        if (file?.type !== 'chunk') continue
        for (const next of file.imports) if (!wanted.includes(next)) wanted.push(next)
      }
      let bytes = 0
      for (const name of wanted) {
        const file = bundle[name]
        if (file?.type === 'chunk') bytes += gzipSync(file.code).length
      }
      const kb = bytes / 1024
      console.info(
        `client: first load: ${kb.toFixed(1)} KB of script, gzipped (budget ${FIRST_LOAD_KB_MAX} KB)`,
      )
      if (kb > FIRST_LOAD_KB_MAX) this.error('first load is above its budget')
    },
  }
}

export default defineConfig({
  plugins: [
    react(),
    VitePWA({
      registerType: 'prompt',
      injectRegister: false,
      manifest: {
        name: 'Baton',
        short_name: 'Baton',
        description: 'Prompt a coding agent from your pocket.',
        id: '/',
        start_url: '/',
        scope: '/',
        display: 'standalone',
        background_color: '#f6f3ec',
        theme_color: '#f6f3ec',
        icons: [
          { src: '/icon-192.png', sizes: '192x192', type: 'image/png' },
          { src: '/icon-512.png', sizes: '512x512', type: 'image/png' },
          { src: '/icon-maskable-512.png', sizes: '512x512', type: 'image/png', purpose: 'maskable' },
        ],
      },
      workbox: {
        globPatterns: ['**/*.{js,css,html,svg,png}'],
        navigateFallback: '/index.html',
        navigateFallbackDenylist: [/^\/(ws|pair|blobs|healthz)(\/|$)/],
        cleanupOutdatedCaches: true,
      },
    }),
    firstLoad(),
  ],
  build: { target: 'es2022', sourcemap: false },
  server: {
    host: '127.0.0.1',
    proxy: {
      '/ws': { target: RELAY, ws: true },
      '/pair': RELAY,
      '/blobs': RELAY,
      '/healthz': RELAY,
    },
  },
})
