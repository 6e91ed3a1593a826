/** The user's address book: labels for AIDs, and favorites. One document, replaced as a whole. */
import { createHash } from 'node:crypto';
import { MAX_ALIAS_CHARS, MAX_BOOK_ENTRIES } from '../../foundation/domain/agents.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';

/** Excludes text that a command line would read as an option or split. */
const LABEL = /^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s-][^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$/u;

export interface Favorite {
  readonly id: string;
  readonly aid: Aid;
  readonly skill: string;
  readonly protocols: readonly string[];
  readonly addedAt: string;
}

export interface AddressBookDocument {
  /** AID → label. */
  readonly aliases: Readonly<Record<string, string>>;
  readonly favorites: readonly Favorite[];
}

/** Stores the document. */
export interface AddressBookStorage {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
}

const KEY = 'address_book';
const EMPTY: AddressBookDocument = { aliases: {}, favorites: [] };

function invalid(path: string, message: string): SvcError {
  return new SvcError('invalid_request', { message, details: { path } });
}

export class AddressBook {
  readonly #memory: AddressBookStorage;

  constructor(memory: AddressBookStorage) {
    this.#memory = memory;
  }

  get(): AddressBookDocument {
    const stored = this.#memory.get(KEY);
    return stored === undefined || stored === null ? EMPTY : (stored as AddressBookDocument);
  }

  /** Changes with the content of the address book. */
  version(): string {
    return createHash('sha256').update(JSON.stringify(this.get())).digest('base64url');
  }

  /**
   * Replaces the whole document. Returns it with AIDs in canonical form.
   * @throws SvcError `bad_aid`, `invalid_request` if a label is malformed or used for two AIDs
   */
  replace(document: AddressBookDocument): AddressBookDocument {
    const aliases: Record<string, string> = {};
    const labels = new Set<string>();
    for (const [text, label] of Object.entries(document.aliases)) {
      const aid = parseAid(text);
      if (label.length > MAX_ALIAS_CHARS || !LABEL.test(label) || isAid(label))
        throw invalid(`/aliases/${text}`, `"${label}" is not a valid label.`);
      const folded = label.toLowerCase();
      if (labels.has(folded))
        throw invalid(
          `/aliases/${text}`,
          `The label "${label}" is used for two agents. Choose another label for one agent.`,
        );
      if (Object.hasOwn(aliases, aid)) throw invalid(`/aliases/${text}`, 'This agent has two labels. Remove one.');
      labels.add(folded);
      aliases[aid] = label;
    }
    const favorites = document.favorites.map((f) => ({ ...f, aid: parseAid(f.aid) }));
    if (labels.size > MAX_BOOK_ENTRIES || favorites.length > MAX_BOOK_ENTRIES)
      throw invalid('', `The address book is limited to ${MAX_BOOK_ENTRIES} entries. Remove some.`);
    const stored = { aliases, favorites };
    this.#memory.set(KEY, stored);
    return stored;
  }

  /** Labels an agent, unless it has a label or the label is in use. @throws SvcError as `replace` */
  label(aid: Aid, label: string): void {
    const { aliases, favorites } = this.get();
    if (aliases[aid] !== undefined || this.find(label) !== null) return;
    this.replace({ aliases: { ...aliases, [aid]: label }, favorites });
  }

  /** The AID with a label, ignoring case. Null if there is none. */
  find(label: string): Aid | null {
    const folded = label.trim().toLowerCase();
    const found = Object.entries(this.get().aliases).find(([, name]) => name.toLowerCase() === folded);
    return found === undefined ? null : parseAid(found[0]);
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
