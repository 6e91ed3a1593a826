/** How agents and IDs are shown to people: by name, or by a unique prefix. */
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { LISTED_ID, uniquePrefixLength } from './id-prefix.ts';

/** Shortest AID prefix that is shown. */
export const SHOWN_AID_CHARS = 12;

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
    return this.#full || aid.length <= this.#aidChars ? aid : `${aid.slice(0, this.#aidChars)}…`;
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

/** Names of agents: the user's labels first, then the names of local agents that no label uses. */
export function mergeNames(
  labels: Readonly<Record<string, string>>,
  own: readonly { readonly aid: string; readonly name?: string | undefined }[],
): Map<string, string> {
  const names = new Map(Object.entries(labels));
  const taken = [...names.values(), ...own.flatMap(({ name }) => name ?? [])].map((name) => name.toLowerCase());
  for (const { aid, name } of own)
    if (name !== undefined && !names.has(aid) && taken.filter((one) => one === name.toLowerCase()).length === 1)
      names.set(aid, name);
  return names;
}
