import { Component, type ReactNode } from 'react'

/** Catches what a screen throws, e.g. a part of an older version that the relay no longer serves. Says so, keeps the rest. */
export class Guard extends Component<{ children: ReactNode }, { message: string | undefined }> {
  override state: { message: string | undefined } = { message: undefined }

  static getDerivedStateFromError(error: unknown): { message: string } {
    return { message: error instanceof Error ? error.message : String(error) }
  }

  override render(): ReactNode {
    if (this.state.message === undefined) return this.props.children
    return (
      <main className="empty" role="alert">
        <p>This screen could not be shown. Nothing that you typed is lost.</p>
        <p className="small quiet">{this.state.message}</p>
        <button type="button" className="button primary" onClick={() => location.reload()}>
          Reload
        </button>
      </main>
    )
  }
}
