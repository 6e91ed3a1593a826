/** The user's address book: labels for AIDs, and favorites. One document, replaced as a whole. */
import { createHash } from 'node:crypto';
import { skeletons } from '../../foundation/confusables.ts';
import {
  MAX_AID_CHARS,
  MAX_ALIAS_CHARS,
  MAX_BOOK_ENTRIES,
  MAX_LABELS_PER_AGENT,
} from '../../foundation/domain/agents.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import {
  agentsNamed,
  foldLabel,
  type LabelBook,
  type Labels,
  labelsOf,
  looksLikeAddress,
  type NamedAgents,
} from '../../foundation/labels.ts';
import { cleanPasted } from '../../foundation/pasted.ts';

/** Invisible characters, except selectors after emoji. */
const SHAPELESS = /(?![\ufe0e\ufe0f])[\p{Default_Ignorable_Code_Point}\p{Cn}\p{Co}\p{Cs}\u2800]/u;
/** Excludes text that a command line would read as an option or split. */
const LABEL = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s-][^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;

export interface Favorite {
  /** Chosen by the client. */
  readonly id: string | number;
  readonly aid: Aid;
  readonly skill: string;
  readonly protocols: readonly string[];
  readonly addedAt: string;
}

export interface AddressBookDocument extends LabelBook {
  /** Absent if no agent has a second label. */
  readonly other_labels?: Readonly<Record<string, readonly string[]>>;
  readonly favorites: readonly Favorite[];
}

/** Stores the document. */
export interface AddressBookStorage {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
}

/** AIDs in the error for an ambiguous name. */
const MAX_SAME_NAMES = 10;
/** Depth of a result to which AIDs get labels. */
const MAX_LABELED_DEPTH = 12;

const KEY = 'address_book';
const EMPTY: AddressBookDocument = { aliases: {}, favorites: [] };

function invalid(path: string, message: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

function full(message: string, limit: number): SvcError {
  return new SvcError('quota_exceeded', { message, details: { limit } });
}

/** Collects the labels of a new document. */
class NewLabels {
  readonly aliases: Record<string, string> = {};
  readonly others: Record<string, string[]> = {};
  readonly #agents = new Map<string, string>();
  readonly #all: { readonly path: string; readonly aid: Aid; readonly label: string }[] = [];

  get count(): number {
    return this.#agents.size;
  }

  /** @throws SvcError `bad_aid`, `invalid_request` */
  addFirst(text: string, label: string): void {
    const aid = parseAid(text);
    const path = `/aliases/${text}`;
    if (Object.hasOwn(this.aliases, aid)) throw invalid(path, 'This agent is listed twice. Remove one entry.');
    this.#take(path, aid, label);
    this.aliases[aid] = label;
  }

  /** @throws SvcError `bad_aid`, `invalid_request`, `quota_exceeded` */
  addOther(text: string, label: string): void {
    const aid = parseAid(text);
    const path = `/other_labels/${text}`;
    if (!Object.hasOwn(this.aliases, aid))
      throw invalid(path, 'This agent has further labels but none in aliases. Add one there.');
    // The same label twice is one label.
    if (this.#agents.get(foldLabel(label)) === aid) return;
    const others = (this.others[aid] ??= []);
    if (others.length + 1 >= MAX_LABELS_PER_AGENT)
      throw full(`An agent can have ${MAX_LABELS_PER_AGENT} labels. Remove some.`, MAX_LABELS_PER_AGENT);
    this.#take(path, aid, label);
    others.push(label);
  }

  /**
   * Refuses new labels that look like the label of another agent.
   * @throws SvcError `invalid_request`
   */
  checkLooks(): void {
    const looks = new Looks(this.#all);
    for (const { path, aid, label } of this.#all) {
      const like = looks.other(aid, label);
      if (like !== undefined)
        throw invalid(path, `"${label}" looks like "${like}", the label of another agent. Choose another label.`);
    }
  }

  #take(path: string, aid: Aid, label: string): void {
    if (label.length > MAX_ALIAS_CHARS || !LABEL.test(label) || SHAPELESS.test(label) || isAid(label))
      throw invalid(path, `"${label}" is not a valid label.`);
    if (looksLikeAddress(label.trim()))
      throw invalid(path, `"${label}" looks like an AID, a key, a host or a path. Choose another label.`);
    const folded = foldLabel(label);
    if (this.#agents.has(folded))
      throw invalid(path, `The label "${label}" is used for two agents. Choose another label for one agent.`);
    this.#agents.set(folded, aid);
    this.#all.push({ path, aid, label });
  }
}

/** Finds labels of other agents that look the same. */
class Looks {
  readonly #bySkeleton: ReadonlyMap<string, readonly { readonly aid: string; readonly label: string }[]>;

  constructor(labels: readonly { readonly aid: string; readonly label: string }[]) {
    const known = new Map<string, { aid: string; label: string }[]>();
    for (const { aid, label } of labels)
      for (const one of skeletons(label)) known.set(one, [...(known.get(one) ?? []), { aid, label }]);
    this.#bySkeleton = known;
  }

  /** The label of another agent that looks like this one; undefined if there is none. */
  other(aid: string, label: string): string | undefined {
    return skeletons(label)
      .flatMap((one) => this.#bySkeleton.get(one) ?? [])
      .find((one) => one.aid !== aid)?.label;
  }
}

export class AddressBook {
  readonly #memory: AddressBookStorage;
  #document: AddressBookDocument | undefined;
  /** AIDs by folded label, of the document. */
  #labeled: ReadonlyMap<string, string> | undefined;

  constructor(memory: AddressBookStorage) {
    this.#memory = memory;
  }

  get #byLabel(): ReadonlyMap<string, string> {
    this.#labeled ??= new Map(labelsOf(this.get()).map(([label, aid]) => [foldLabel(label), aid]));
    return this.#labeled;
  }

  get(): AddressBookDocument {
    this.#document ??= (this.#memory.get(KEY) as AddressBookDocument | null | undefined) ?? EMPTY;
    return this.#document;
  }

  /** Changes with the content of the address book. */
  version(): string {
    return createHash('sha256').update(JSON.stringify(this.get())).digest('base64url');
  }

  /**
   * Replaces the whole document. Without `other_labels`, agents that still have a label keep their further labels:
   * not every client knows them. Returns the document with AIDs in canonical form.
   * @throws SvcError `bad_aid`, `quota_exceeded`, `invalid_request` if a label is malformed, used for two AIDs, or looks like
   *   the label of another AID
   */
  replace(document: AddressBookDocument): AddressBookDocument {
    const before = this.get();
    const labels = new NewLabels();
    for (const [aid, label] of Object.entries(document.aliases)) labels.addFirst(aid, label);
    const kept = Object.entries(before.other_labels ?? {}).filter(([aid]) => Object.hasOwn(labels.aliases, aid));
    for (const [aid, others] of document.other_labels === undefined ? kept : Object.entries(document.other_labels))
      for (const label of others) labels.addOther(aid, label);
    labels.checkLooks();
    const favorites = document.favorites.map((f) => ({ ...f, aid: parseAid(f.aid) }));
    if (labels.count > MAX_BOOK_ENTRIES || favorites.length > MAX_BOOK_ENTRIES)
      throw full(`The address book is limited to ${MAX_BOOK_ENTRIES} entries. Remove some.`, MAX_BOOK_ENTRIES);
    const { aliases, others } = labels;
    const more = Object.keys(others).length === 0 ? {} : { other_labels: others };
    const stored = { aliases, ...more, favorites };
    this.#memory.set(KEY, stored);
    this.#document = stored;
    this.#labeled = undefined;
    return stored;
  }

  /**
   * Labels an agent, unless it has a label. Skips labels that are in use, or look like one. May run in a transaction, which may be rolled
   * back.
   * @throws SvcError as `replace`
   */
  label(aid: Aid, ...wanted: readonly string[]): void {
    const { aliases, other_labels: others, favorites } = this.get();
    const looks = new Looks(labelsOf(this.get()).map(([one, other]) => ({ label: one, aid: other })));
    const [label, ...more] = wanted.filter((one) => this.find(one) === null && looks.other(aid, one) === undefined);
    if (aliases[aid] !== undefined || label === undefined) return;
    const further = more.length === 0 ? {} : { other_labels: { ...others, [aid]: more } };
    this.replace({ aliases: { ...aliases, [aid]: label }, ...further, favorites });
    this.#document = undefined;
    this.#labeled = undefined;
  }

  /** The labels of an agent. The first one is shown. */
  labels(aid: Aid): readonly string[] {
    const { aliases, other_labels: others = {} } = this.get();
    const label = aliases[aid];
    return label === undefined ? [] : [label, ...(others[aid] ?? [])];
  }

  /** The AID with a label, ignoring case. Null if there is none. */
  find(label: string): Aid | null {
    const found = this.#byLabel.get(foldLabel(label));
    return found === undefined ? null : parseAid(found);
  }

  /**
   * The agent that a text names: an AID in any form, a label, or the profile name of a local agent. An AID is never
   * read as a label.
   * @param own reads the local agents, if no label matches
   * @throws SvcError `bad_aid`, `ambiguous_label` if several local agents have this name
   */
  agent(text: string, own: () => NamedAgents): Aid {
    try {
      return parseAid(text);
    } catch (error) {
      if (!(error instanceof SvcError) || text.trim().length > MAX_AID_CHARS) throw error;
      const labeled = this.find(text) ?? this.find(cleanPasted(text));
      if (labeled !== null) return labeled;
      if (looksLikeAddress(text.trim())) throw error;
      const [aid, ...others] = agentsNamed(text, EMPTY, own());
      if (aid === undefined)
        throw new SvcError('bad_aid', {
          message: 'This is neither an AID nor a label in the address book. Check it for typing errors.',
          ...(error.details === undefined ? {} : { details: error.details }),
          cause: error,
        });
      if (others.length > 0)
        throw new SvcError('ambiguous_label', { details: { aids: [aid, ...others].slice(0, MAX_SAME_NAMES) } });
      return parseAid(aid);
    }
  }

  /** The labels of the agents in a result: the first label of each AID that is the whole text of a member. */
  labelsIn(result: unknown): Labels {
    const { aliases } = this.get();
    const found: Record<string, string> = {};
    if (this.#byLabel.size === 0) return found;
    const walk = (value: unknown, depth: number): void => {
      if (typeof value === 'string') {
        if (value.length > MAX_AID_CHARS || !Object.hasOwn(aliases, value)) return;
        found[value] = aliases[value] ?? '';
      } else if (typeof value === 'object' && value !== null && depth < MAX_LABELED_DEPTH && !ArrayBuffer.isView(value))
        for (const member of Object.values(value)) walk(member, depth + 1);
    };
    walk(result, 0);
    return found;
  }
}

function isAid(text: string): boolean {
  try {
    parseAid(text);
    return true;
  } catch {
    return false;
  }
}
