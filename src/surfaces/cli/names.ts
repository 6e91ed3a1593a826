/** How agents and IDs are shown to people: by name, or by a unique prefix. */
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { LISTED_ID_PATTERN } from '../../foundation/ids.ts';
import {
  agentsNamed,
  type LabelBook,
  looksLikeAddress,
  mergeNames,
  type NamedAgents,
  SHOWN_AID_CHARS,
  shortAid,
} from '../../foundation/labels.ts';
import { cleanPastedAid, cleanPastedId } from '../../foundation/pasted.ts';

// Resolves prefixes of IDs: a prefix stands for the only ID that starts with it.

/** Shortest prefix that is shown. */
const SHOWN_ID_CHARS = 8;
/** Shortest prefix that is accepted. */
const TYPED_ID_CHARS = 4;

/** IDs of tunnels and of access list entries. */
export const LISTED_ID = new RegExp(LISTED_ID_PATTERN);

/** A kind of ID, and the command that lists existing IDs. */
export interface IdSource {
  /** The kind in words, such as `group`. */
  readonly noun: string;
  /** The command that lists them. */
  readonly command: string;
  readonly ids: () => Promise<readonly string[]>;
}

/** Length of the shortest prefix that is unique among these IDs, at least `SHOWN_ID_CHARS`. */
export function uniquePrefixLength(ids: Iterable<string>): number {
  const sorted = [...new Set(ids)].sort();
  const shared = sorted.map((id, i) => {
    const next = sorted[i + 1] ?? '';
    let same = 0;
    while (same < id.length && id[same] === next[same]) same++;
    return same + 1;
  });
  return Math.max(SHOWN_ID_CHARS, ...shared);
}

/** True for a text that can be the prefix of an ID. */
export function isIdPrefix(text: string): boolean {
  const typed = cleanPastedId(text).toLowerCase();
  return /^[0-9a-f]+$/.test(typed) && typed.length >= TYPED_ID_CHARS;
}

/**
 * The ID for a text, which may be a prefix.
 * @param whole pattern of a complete ID, which is returned unchanged
 * @throws SvcError `invalid_request` if it is not a prefix or matches several IDs, `not_found` if it matches none
 */
export async function resolveId(text: string, whole: RegExp, { noun, command, ids }: IdSource): Promise<string> {
  const typed = cleanPastedId(text).toLowerCase();
  if (whole.test(typed)) return typed;
  if (!isIdPrefix(text))
    throw new SvcError('invalid_request', {
      message: `"${text}" is not a ${noun}. Type its ID, or at least its first ${TYPED_ID_CHARS} characters. ${command} lists them.`,
    });
  const found = [...new Set(await ids())].filter((id) => id.startsWith(typed));
  const [only, ...others] = found;
  if (only === undefined)
    throw new SvcError('not_found', { message: `No ${noun} starts with "${typed}". ${command} lists them.` });
  if (others.length > 0)
    throw new SvcError('invalid_request', {
      message: `"${typed}" matches ${found.length} IDs: ${found.map((id) => id.slice(0, uniquePrefixLength(found))).join(', ')}. Type more characters.`,
    });
  return only;
}

// Resolves what a user may type in place of an AID: a label of the address book, the name of a local agent, or a
// prefix of an AID.

/** Sources of names and AIDs. Each is read at most once, and only if the text is not an AID. */
interface AliasSources {
  readonly book: () => Promise<LabelBook>;
  /** The agents of the node. */
  readonly own: () => Promise<NamedAgents>;
  /** AIDs that the node has seen. */
  readonly known: (own: NamedAgents) => Promise<Iterable<string>>;
}

const BEGINNING = /^(?:aid1|0x|bc1q)[0-9a-z]*$/;

export class Aliases {
  readonly #sources: AliasSources;
  #book: Promise<LabelBook> | undefined;
  #own: Promise<NamedAgents> | undefined;

  constructor(sources: AliasSources) {
    this.#sources = sources;
  }

  /** The names to show for agents. @throws SvcError if they cannot be read */
  async names(): Promise<Map<string, string>> {
    this.#book ??= this.#sources.book();
    this.#own ??= this.#sources.own();
    const [book, own] = await Promise.all([this.#book, this.#own]);
    return mergeNames(book, own);
  }

  /**
   * The AID for a text. Names are case-insensitive.
   * @throws SvcError `bad_aid` if it is unknown, `ambiguous_label` if several local agents have this name,
   *   `invalid_request` if it is the prefix of several AIDs
   */
  async aid(text: string): Promise<string> {
    // Loads hashes and encodings that commands without an AID do not need.
    const { parseAid } = await import('../../foundation/identity/aid.ts');
    try {
      return parseAid(text);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
    }
    const typed = text.trim().replace(/…$/, '').toLowerCase();
    const start = cleanPastedAid(text).toLowerCase();
    this.#book ??= this.#sources.book();
    const [labeled] = agentsNamed(typed, await this.#book, []);
    const found = labeled ?? (await this.#named(typed, start));
    if (found !== undefined) return found;
    if (start.startsWith('aid1'))
      throw new SvcError('bad_aid', {
        message: `"${text}" is not a valid AID: it has a typo, or a part is missing. Copy the whole AID. "svc agents --full" prints your own.`,
      });
    throw new SvcError('bad_aid', {
      message: `"${text}" is neither an AID nor a label in your address book (svc alias list). Check it for typos, or add the label with "svc alias add".`,
    });
  }

  /** The local agent with this name, or the only AID with this prefix. @param start the text as the start of an AID */
  async #named(typed: string, start: string): Promise<string | undefined> {
    this.#own ??= this.#sources.own();
    const own = await this.#own.catch(() => []);
    const [one, ...others] = looksLikeAddress(typed) ? [] : agentsNamed(typed, { aliases: {} }, own);
    if (others.length > 0)
      throw new SvcError('ambiguous_label', {
        message: `${others.length + 1} agents here are named "${typed}". Give the AID instead, or label it with "svc alias add". "svc agents --full" lists them.`,
      });
    if (one !== undefined) return one;
    if (!BEGINNING.test(start) || start.length < SHOWN_AID_CHARS) return undefined;
    const names = await this.names().catch(() => new Map<string, string>());
    const known = await this.#sources.known(own);
    const found = [...new Set([...names.keys(), ...own.map(({ aid }) => aid), ...known])].filter((aid) =>
      aid.toLowerCase().startsWith(start),
    );
    if (found.length > 1)
      throw new SvcError('invalid_request', {
        message: `"${start}" matches ${found.length} AIDs: ${found.join(', ')}. Type more characters.`,
      });
    return found[0];
  }
}

/** AIDs of all schemes in canonical form. */
const AID = /^(?:aid1[02-9ac-hj-np-z]{58}|0x[0-9A-Fa-f]{40}|bc1q[02-9ac-hj-np-z]{38})$/;
const HASH = new RegExp(SHA256_PATTERN);

/** Response members with IDs that commands also accept as prefixes. */
const ID_KEYS: ReadonlySet<string> = new Set(['id', 'group_id', 'entry_id', 'object_id', 'message_id', 'reply_to']);

function isId(key: string, text: string): boolean {
  return ID_KEYS.has(key) && (HASH.test(text) || LISTED_ID.test(text));
}

/** Copies a response and replaces each text by the result of `change`. */
function mapped(value: unknown, change: (text: string, key: string, listed: boolean) => string): unknown {
  const walk = (one: unknown, key: string, listed: boolean): unknown => {
    if (typeof one === 'string') return change(one, key, listed);
    if (Array.isArray(one)) return one.map((item) => walk(item, key, true));
    if (typeof one !== 'object' || one === null || one instanceof Uint8Array) return one;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, walk(member, name, listed)]));
  };
  return walk(value, '', false);
}

/** All AIDs in a response, except keys of maps. */
export function aidsIn(answer: unknown): Set<string> {
  const found = new Set<string>();
  mapped(answer, (text) => (AID.test(text) && found.add(text), text));
  return found;
}

function idsIn(answer: unknown): Set<string> {
  const found = new Set<string>();
  mapped(answer, (text, key) => (isId(key, text) && found.add(text), text));
  return found;
}

export class Names {
  readonly #names: ReadonlyMap<string, string>;
  readonly #aidChars: number;
  readonly #full: boolean;

  /**
   * @param names by AID
   * @param others further AIDs that are shown
   * @param full show complete AIDs and IDs
   */
  constructor(names: ReadonlyMap<string, string>, others: Iterable<string>, full: boolean) {
    this.#names = names;
    this.#aidChars = Math.max(SHOWN_AID_CHARS, uniquePrefixLength([...names.keys(), ...others]));
    this.#full = full;
  }

  /** The name of an agent, if it has one. */
  nameOf(aid: string): string | undefined {
    return this.#names.get(aid);
  }

  /** The shortest unique prefix of an AID, or the complete AID with --full. */
  short(aid: string): string {
    return this.#full ? aid : shortAid(aid, this.#aidChars);
  }

  /** In a list: the name, or the unique prefix of the AID. */
  shown(aid: string): string {
    const name = this.nameOf(aid);
    return name === undefined || this.#full ? this.named(this.short(aid), name) : name;
  }

  /** An AID, followed by its name if it has one. */
  named(aid: string, name: string | undefined = this.nameOf(aid)): string {
    return name === undefined ? aid : `${aid} (${name})`;
  }

  /** A response with names: instead of AIDs in lists, after AIDs in other places. IDs in lists are shortened. */
  in<A>(answer: A): A {
    const chars = uniquePrefixLength(idsIn(answer));
    const change = (text: string, key: string, listed: boolean): string => {
      if (AID.test(text)) return listed ? this.shown(text) : this.named(text);
      return listed && !this.#full && isId(key, text) && text.length > chars ? `${text.slice(0, chars)}…` : text;
    };
    return mapped(answer, change) as A;
  }
}
