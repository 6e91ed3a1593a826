/** How agents and ids are shown to people: by the names that the user knows, or by a beginning that tells them apart. */
import { SHA256_PATTERN } from '../../foundation/domain/hashes.ts';
import { charsThatTell, LISTED_ID } from './beginnings.ts';

/** Fewest characters of an AID that are shown of one without a name. */
export const SHOWN_AID_CHARS = 12;

/** AIDs of all schemes in their canonical text. */
const AID = /^(?:aid1[02-9ac-hj-np-z]{58}|0x[0-9A-Fa-f]{40}|bc1q[02-9ac-hj-np-z]{38})$/;
const HASH = new RegExp(SHA256_PATTERN);

/** Members of answers whose ids commands take by their beginning, too. */
const ID_KEYS: ReadonlySet<string> = new Set(['id', 'group_id', 'entry_id', 'object_id', 'message_id', 'reply_to']);

function isId(key: string, text: string): boolean {
  return ID_KEYS.has(key) && (HASH.test(text) || LISTED_ID.test(text));
}

/** Walks through an answer, and puts what `change` says in the place of each text in it. */
function mapped(value: unknown, change: (text: string, key: string, listed: boolean) => string): unknown {
  const walk = (one: unknown, key: string, listed: boolean): unknown => {
    if (typeof one === 'string') return change(one, key, listed);
    if (Array.isArray(one)) return one.map((item) => walk(item, key, true));
    if (typeof one !== 'object' || one === null || one instanceof Uint8Array) return one;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, walk(member, name, listed)]));
  };
  return walk(value, '', false);
}

/** All AIDs in an answer, keys of maps left out. */
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
   * @param others AIDs that are shown beside those
   * @param full AIDs and ids are shown whole
   */
  constructor(names: ReadonlyMap<string, string>, others: Iterable<string>, full: boolean) {
    this.#names = names;
    this.#aidChars = Math.max(SHOWN_AID_CHARS, charsThatTell([...names.keys(), ...others]));
    this.#full = full;
  }

  /** The name that the user knows an agent by. */
  nameOf(aid: string): string | undefined {
    return this.#names.get(aid);
  }

  /** So much of an AID as tells it from the others; whole where that was asked for. */
  short(aid: string): string {
    return this.#full || aid.length <= this.#aidChars ? aid : `${aid.slice(0, this.#aidChars)}…`;
  }

  /** In a list: a name, or so much of the AID as tells it from the others. */
  shown(aid: string): string {
    const name = this.nameOf(aid);
    return name === undefined || this.#full ? this.named(this.short(aid), name) : name;
  }

  /** An AID with its name behind it, where it has one. */
  named(aid: string, name: string | undefined = this.nameOf(aid)): string {
    return name === undefined ? aid : `${aid} (${name})`;
  }

  /** An answer with names in it: agents in lists by them, those that it is about with them; ids in lists are short. */
  in<A>(answer: A): A {
    const chars = charsThatTell(idsIn(answer));
    const change = (text: string, key: string, listed: boolean): string => {
      if (AID.test(text)) return listed ? this.shown(text) : this.named(text);
      return listed && !this.#full && isId(key, text) && text.length > chars ? `${text.slice(0, chars)}…` : text;
    };
    return mapped(answer, change) as A;
  }
}

/** The names of agents: labels of the user's own first, then what own agents are called, where that is no other's name. */
export function namesFrom(
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
