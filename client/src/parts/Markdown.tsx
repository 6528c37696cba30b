/**
 * A model's Markdown as React elements: no HTML is ever taken over, code is one selectable block, wide things scroll in
 * themselves (F65).
 */
import { lexer, type Token, type Tokens } from 'marked'
import { memo, type ReactElement, type ReactNode } from 'react'
import { Code } from './Code.tsx'

export const Markdown = memo(function Markdown({ text }: { text: string }): ReactElement {
  return <div className="prose">{blocks(lexer(text, { gfm: true }))}</div>
})

function blocks(tokens: readonly Token[]): ReactNode[] {
  return tokens.map((token, i) => <Block key={i} token={token} />)
}

// marked's Token union ends in a generic one, so that its kinds can't be narrowed by `type`; the kind says which it is.
function Block({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case 'space':
    case 'def':
      return null
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading
      // The page has h1 and h2 of its own.
      const Level = depth <= 1 ? 'h3' : depth === 2 ? 'h4' : 'h5'
      return <Level>{inline(tokens)}</Level>
    }
    case 'paragraph':
      return <p>{inline((token as Tokens.Paragraph).tokens)}</p>
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inline(tokens) : text
    }
    case 'code': {
      const { text, lang } = token as Tokens.Code
      return <Code text={text} label={lang ? `Code, ${lang}` : 'Code'} caption={lang} />
    }
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>
    case 'list': {
      const { ordered, start, items } = token as Tokens.List
      const rows = items.map((item, i) => (
        <li key={i}>
          {item.task && <input type="checkbox" checked={item.checked ?? false} disabled aria-label="Task" />}
          {blocks(item.tokens.filter((inner) => inner.type !== 'checkbox'))}
        </li>
      ))
      return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>
    }
    case 'table':
      return <Table table={token as Tokens.Table} />
    case 'hr':
      return <hr />
    default:
      // HTML and whatever a later marked knows: as text.
      return <p>{token.raw}</p>
  }
}

function Table({ table }: { table: Tokens.Table }): ReactElement {
  return (
    <div className="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>
            {table.header.map((cell, i) => (
              <th key={i} scope="col" style={{ textAlign: cell.align ?? 'left' }}>
                {inline(cell.tokens)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j} style={{ textAlign: cell.align ?? 'left' }}>
                  {inline(cell.tokens)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function inline(tokens: readonly Token[]): ReactNode[] {
  return tokens.map((token, i) => <Inline key={i} token={token} />)
}

function Inline({ token }: { token: Token }): ReactNode {
  switch (token.type) {
    case 'strong':
      return <strong>{inline((token as Tokens.Strong).tokens)}</strong>
    case 'em':
      return <em>{inline((token as Tokens.Em).tokens)}</em>
    case 'del':
      return <del>{inline((token as Tokens.Del).tokens)}</del>
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>
    case 'br':
      return <br />
    case 'escape':
      return (token as Tokens.Escape).text
    case 'text': {
      const { tokens, text } = token as Tokens.Text
      return tokens ? inline(tokens) : unescaped(text)
    }
    case 'link': {
      const { href, tokens } = token as Tokens.Link
      return isSafe(href) ? (
        <a href={href} target="_blank" rel="noopener noreferrer">
          {inline(tokens)}
        </a>
      ) : (
        inline(tokens)
      )
    }
    case 'image': {
      // Nothing is loaded from elsewhere: an image is a link to itself.
      const { href, text } = token as Tokens.Image
      return isSafe(href) ? (
        <a href={href} target="_blank" rel="noopener noreferrer">
          {text || href}
        </a>
      ) : (
        text
      )
    }
    default:
      return token.raw
  }
}

function isSafe(href: string): boolean {
  return /^(https?:|mailto:)/i.test(href)
}

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

function unescaped(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole)
}
