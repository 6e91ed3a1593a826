/** Changes members of a JSON or TOML text by their path. Comments, order and everything else stay. */
import { isDeepStrictEqual } from 'node:util';
import {
  applyEdits,
  type FormattingOptions,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
} from 'jsonc-parser';
import { parse } from 'smol-toml';
import { type Inline, removePath, setPath } from '../../foundation/config/toml-edit.ts';
import { isObject } from '../../foundation/json.ts';

type Path = readonly string[];

export interface Editor {
  /** The value at a path. Undefined if there is none. */
  get(path: Path): unknown;
  /** Sets a value. Undefined removes it. */
  set(path: Path, value: Inline | undefined): void;
  /** A member on the path, or of the value there, that occurs twice. Parsers differ in which one they use. */
  repeated(path: Path): string | undefined;
  readonly text: string;
}

const BOM = '\uFEFF';

function split(text: string): { mark: string; body: string } {
  const mark = text.startsWith(BOM) ? BOM : '';
  return { mark, body: text.slice(mark.length) };
}

/** The indentation of the file, so that a new entry matches. */
function formattingOf(text: string): FormattingOptions {
  const [, indent = '  '] = /^([ \t]+)\S/m.exec(text) ?? [];
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol: text.includes('\r\n') ? '\r\n' : '\n' };
}

function repeatedMember(tree: Node, path: Path): string | undefined {
  let at: Node | undefined = tree;
  for (const name of path) {
    const found: Node[] = (at?.children ?? []).filter(({ children }) => children?.[0]?.value === name);
    if (found.length > 1) return name;
    at = found[0]?.children?.[1];
  }
  const names = at?.type === 'object' ? (at.children ?? []).map(({ children }) => String(children?.[0]?.value)) : [];
  return names.find((name, i) => names.indexOf(name) !== i);
}

/** Null if the text is not a JSON object. Comments, trailing commas and a byte order mark are allowed. */
export function jsonEditor(text: string): Editor | null {
  const { mark, body } = split(text);
  const isEmpty = body.trim() === '';
  let written = isEmpty ? '{}' : body;
  const options = { formattingOptions: formattingOf(written) };
  const errors: ParseError[] = [];
  const treeOf = (): Node | undefined => parseTree(written, errors, { allowTrailingComma: true });
  if (treeOf()?.type !== 'object' || errors.length > 0) return null;
  const get = (path: Path): unknown => {
    const tree = treeOf();
    const node = tree === undefined ? undefined : findNodeAtLocation(tree, [...path]);
    return node === undefined ? undefined : getNodeValue(node);
  };
  return {
    get,
    set(path, value) {
      if (isDeepStrictEqual(get(path), value)) return;
      written = applyEdits(written, modify(written, [...path], value, options));
    },
    repeated(path) {
      const tree = treeOf();
      return tree === undefined ? undefined : repeatedMember(tree, path);
    },
    get text() {
      return mark + (isEmpty && !written.endsWith('\n') ? `${written}\n` : written);
    },
  };
}

function valueAt(root: unknown, path: Path): unknown {
  let at = root;
  for (const name of path) at = isObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  return at;
}

/** Null if the text is not valid TOML. A byte order mark is allowed. */
export function tomlEditor(text: string): Editor | null {
  const { mark, body } = split(text);
  let written = body;
  try {
    parse(body);
  } catch {
    return null;
  }
  const get = (path: Path): unknown => valueAt(parse(written), path);
  return {
    get,
    set(path, value) {
      if (isDeepStrictEqual(get(path), value)) return;
      written = value === undefined ? removePath(written, path) : setPath(written, path, value);
    },
    // TOML forbids it.
    repeated: () => undefined,
    get text() {
      return mark + written;
    },
  };
}
