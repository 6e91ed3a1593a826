/** The prose of source files: comments, and strings of several words such as messages and test names. */
import { type Node, parseSync, Visitor } from 'oxc-parser';
import { addInline, NOTHING, type Passage, PassageBuilder } from './passage.ts';

/** Comments for tools, not for readers. */
const DIRECTIVE = /^[\s*]*(?:biome-ignore|oxlint-|@ts-|#region|#endregion|#__|@__|c8 ignore|prettier-)/;
const STATEMENT =
  /^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|DROP|ALTER|PRAGMA|WITH|BEGIN|REPLACE|WHERE|FROM|AND|ORDER)\b/;
/** Attributes that hold names, not text. */
const NAME_ATTRIBUTE = /^(?:class|className|style|d|viewBox|points|transform|href|src|rel|key|id|for|type)$/;
const MIN_MESSAGE_WORDS = 3;
const PLAIN_TOKEN = /^["'(“]?\p{L}[\p{L}'’-]*[.,;:!?)"'”…]*$/u;
/** Share of a message's tokens that are words; below it, it is code or data. */
const MIN_WORD_SHARE = 0.6;

function isMessage(text: string): boolean {
  const tokens = text.trim().split(/\s+/);
  const words = tokens.filter((token) => PLAIN_TOKEN.test(token)).length;
  return words >= MIN_MESSAGE_WORDS && words >= tokens.length * MIN_WORD_SHARE && !STATEMENT.test(text);
}

interface SourceOptions {
  /** Every string is shown to people, however short it is. */
  readonly isWordFile?: boolean;
}

/** Adds the source of a string without its quotes; an escape counts as a blank or as the escaped character. */
function addLiteral(builder: PassageBuilder, raw: string, offset: number): void {
  const text = raw.replace(/\\(?:u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|[\s\S])/g, (escape) =>
    /^\\["'`\\$]$/.test(escape) ? `${NOTHING}${escape.slice(1)}` : ' '.repeat(escape.length),
  );
  addInline(builder, text, offset);
}

/** The strings of `a + b` and of templates read as one text. */
function addText(builder: PassageBuilder, node: Node, source: string): void {
  if (node.type === 'Literal' && typeof node.value === 'string')
    addLiteral(builder, source.slice(node.start + 1, node.end - 1), node.start + 1);
  else if (node.type === 'TemplateLiteral')
    node.quasis.forEach((quasi, index) => {
      if (index > 0) builder.placeholder(quasi.start);
      const start = quasi.start + Math.max(0, source.slice(quasi.start, quasi.end).indexOf(quasi.value.raw));
      addLiteral(builder, quasi.value.raw, start);
    });
  else if (node.type === 'BinaryExpression' && node.operator === '+') {
    addText(builder, node.left, source);
    addText(builder, node.right, source);
  } else builder.placeholder(node.start);
}

function messagePassages(path: string, source: string, { isWordFile = false }: SourceOptions): Passage[] {
  const passages: Passage[] = [];
  const seen = new Set<number>();
  const take = (node: Node): void => {
    if (seen.has(node.start)) return;
    const builder = new PassageBuilder();
    addText(builder, node, source);
    passages.push(...builder.build('message').filter(({ text }) => isWordFile || isMessage(text)));
  };
  const skip = ({ start, end }: Node): void => {
    for (let offset = start; offset < end; offset++) seen.add(offset);
  };
  const { program } = parseSync(path, source);
  new Visitor({
    ImportDeclaration: skip,
    ExportAllDeclaration: skip,
    TSLiteralType: skip,
    Property({ key }) {
      if (key.type === 'Literal') skip(key);
    },
    JSXAttribute(node) {
      if (node.name.type === 'JSXIdentifier' && NAME_ATTRIBUTE.test(node.name.name)) skip(node);
    },
    BinaryExpression(node) {
      if (node.operator !== '+') return;
      take(node);
      skip(node);
    },
    TemplateLiteral(node) {
      take(node);
      for (const { start } of node.quasis) seen.add(start);
    },
    Literal(node) {
      if (typeof node.value === 'string') take(node);
    },
    JSXText(node) {
      passages.push(...new PassageBuilder().add(node.value, node.start).build('message'));
    },
  }).visit(program);
  return passages;
}

interface CommentLine {
  readonly text: string;
  readonly offset: number;
}

/** Lines of a comment without the marks in front of them. */
function commentLines(value: string, offset: number): CommentLine[] {
  let at = offset;
  return value.split('\n').map((line) => {
    const mark = /^\s*\*+\s?/.exec(line)?.[0].length ?? 0;
    const result = { text: line.slice(mark), offset: at + mark };
    at += line.length + 1;
    return result;
  });
}

/** Paragraphs, list items and tags of comments are separate passages. */
function commentPassages(lines: readonly CommentLine[]): Passage[] {
  const passages: Passage[] = [];
  let block: CommentLine[] = [];
  const flush = (): void => {
    const [first] = block;
    if (first === undefined) return;
    let text = '';
    for (const line of block) text = text.padEnd(line.offset - first.offset) + line.text;
    const builder = new PassageBuilder();
    addInline(builder, text, first.offset);
    passages.push(...builder.build('comment'));
    block = [];
  };
  for (const line of lines) {
    const mark = /^\s*(?:[-•] |\d+\. |@\w+)/.exec(line.text)?.[0].length;
    if (line.text.trim() === '' || mark !== undefined) flush();
    if (line.text.trim() === '') continue;
    block.push(mark === undefined ? line : { text: line.text.slice(mark), offset: line.offset + mark });
  }
  flush();
  return passages;
}

/** Comments and messages of a TypeScript or TSX file. */
export function sourcePassages(path: string, source: string, options: SourceOptions = {}): Passage[] {
  const { comments } = parseSync(path, source);
  const passages: Passage[] = [];
  let lines: CommentLine[] = [];
  let end = 0;
  const flush = (): void => {
    passages.push(...commentPassages(lines));
    lines = [];
  };
  for (const { type, value, start, end: next } of comments) {
    if (type === 'Block' || !/^[ \t]*\n[ \t]*$/.test(source.slice(end, start))) flush();
    end = next;
    if (DIRECTIVE.test(value)) continue;
    lines.push(...commentLines(value, start + 2));
    if (type === 'Block') flush();
  }
  flush();
  return [...passages, ...messagePassages(path, source, options)];
}

/** Comments of style sheets. */
export function stylePassages(source: string): Passage[] {
  return [...source.matchAll(/\/\*([\s\S]*?)\*\//g)].flatMap(({ 1: value = '', index }) =>
    commentPassages(commentLines(value, index + 2)),
  );
}

/** Comments and text of HTML pages; scripts and styles are neither. */
export function pagePassages(source: string): Passage[] {
  const plain = source.replace(/<(script|style)\b[\s\S]*?<\/\1>/g, (code) => ' '.repeat(code.length));
  const comments = [...plain.matchAll(/<!--([\s\S]*?)-->/g)].flatMap(({ 1: value = '', index }) =>
    commentPassages(commentLines(value, index + '<!--'.length)),
  );
  const texts = plain.replace(/<!--[\s\S]*?-->/g, (comment) => ' '.repeat(comment.length));
  const rest = [...texts.matchAll(/>([^<>]+)</g)].flatMap(({ 1: text = '', index }) =>
    new PassageBuilder().add(text, index + 1).build('message'),
  );
  return [...comments, ...rest];
}
