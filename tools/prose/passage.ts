/** A run of prose with the place of each character in its file: whitespace is collapsed, code is a placeholder. */

/** Stands for a code span, an expression or a URL, so that a sentence keeps its shape. */
export const PLACEHOLDER = '¤';
/** A character that holds an offset and is not part of the text. */
export const NOTHING = '\0';

export type PassageKind = 'text' | 'heading' | 'cell' | 'comment' | 'message';

export interface Passage {
  readonly kind: PassageKind;
  readonly text: string;
  /** For each character of `text`, its offset in the file. */
  readonly offsets: readonly number[];
}

const WORD = /[\p{L}\d][\p{L}\d'’-]*/gu;

export function countWords(text: string): number {
  return text.match(WORD)?.length ?? 0;
}

export class PassageBuilder {
  #text = '';
  readonly #offsets: number[] = [];

  add(text: string, offset: number): this {
    for (let i = 0; i < text.length; i++) this.#push(text.charAt(i), offset + i);
    return this;
  }

  placeholder(offset: number): this {
    this.#push(PLACEHOLDER, offset);
    return this;
  }

  build(kind: PassageKind): Passage[] {
    const text = this.#text.trimEnd();
    return /\p{L}/u.test(text) ? [{ kind, text, offsets: this.#offsets.slice(0, text.length) }] : [];
  }

  #push(char: string, offset: number): void {
    if (char === NOTHING) return;
    const isSpace = /\s/.test(char);
    if (isSpace && (this.#text === '' || this.#text.endsWith(' '))) return;
    this.#text += isSpace ? ' ' : char;
    this.#offsets.push(offset);
  }
}

/** Inline Markdown other than words: code spans, comments, images, links, tags, URLs and escapes. */
const INLINE =
  /(?<code>(?<tick>`+)(?<span>[^`][\s\S]*?)\k<tick>(?!`))|(?<comment><!--[\s\S]*?-->)|(?<target>\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+"[^"]*")?\)|\]\[[^\]]*\])|(?<tag><\/?[a-zA-Z][^<>]*>)|(?<jsdoc>\{@\w+[^}]*\})|(?<url>\bhttps?:\/\/[^\s<>)]+)|(?<mark>\*\*|!?\[|(?<![\w])[*_](?=\S)|(?<=\S)[*_](?![\w])|\\(?=[^\w\s]))/g;
const FUNCTION_WORD =
  /(?:^|\s)(?:a|an|the|is|are|was|of|to|and|or|that|it|in|for|not|by|with|who|what|where|when|if)(?=\s|$)/i;
const PLAIN_WORD = /(?:^|\s)[a-z]+[.,;:]?(?=\s|$)/gi;
const MAX_CODE_WORDS = 3;

/** A sentence does not become code by a pair of backticks. */
function isProseSpan(span: string): boolean {
  return FUNCTION_WORD.test(span) && (span.match(PLAIN_WORD)?.length ?? 0) > MAX_CODE_WORDS;
}

/** Adds inline Markdown, which comments use too; `offset` is that of the text in its file. */
export function addInline(builder: PassageBuilder, text: string, offset: number): void {
  let from = 0;
  for (const match of text.matchAll(INLINE)) {
    builder.add(text.slice(from, match.index), offset + from);
    from = match.index + match[0].length;
    const { code, span = '', tick = '', jsdoc, url, target } = match.groups ?? {};
    if (code !== undefined && isProseSpan(span)) builder.add(span, offset + match.index + tick.length);
    else if ((code ?? jsdoc ?? url) !== undefined) builder.placeholder(offset + match.index);
    else if (target === undefined && match.groups?.['tag'] !== undefined) builder.add(' ', offset + match.index);
  }
  builder.add(text.slice(from), offset + from);
}
