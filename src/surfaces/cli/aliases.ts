/**
 * Resolves what a user may type in place of an AID: a label of the address book, the name of a local agent, or a prefix
 * of an AID.
 */
import { SvcError } from '../../foundation/errors.ts';
import { mergeNames, SHOWN_AID_CHARS } from './names.ts';

/** AID to label. */
type Labels = Readonly<Record<string, string>>;
type Own = readonly { readonly aid: string; readonly name?: string | undefined }[];

/** Sources of names and AIDs. Each is read at most once, and only if the text is not an AID. */
export interface AliasSources {
  readonly labels: () => Promise<Labels>;
  /** The agents of the node. */
  readonly own: () => Promise<Own>;
  /** AIDs that the node has seen. */
  readonly known: (own: Own) => Promise<Iterable<string>>;
}

const BEGINNING = /^(?:aid1|0x|bc1q)[0-9a-z]*$/;

export class Aliases {
  readonly #sources: AliasSources;
  #labels: Promise<Labels> | undefined;
  #own: Promise<Own> | undefined;

  constructor(sources: AliasSources) {
    this.#sources = sources;
  }

  /** The names to show for agents. @throws SvcError if they cannot be read */
  async names(): Promise<Map<string, string>> {
    this.#labels ??= this.#sources.labels();
    this.#own ??= this.#sources.own();
    const [labels, own] = await Promise.all([this.#labels, this.#own]);
    return mergeNames(labels, own);
  }

  /**
   * The AID for a text. Names are case-insensitive.
   * @throws SvcError `bad_aid` if it is unknown, `invalid_request` if it is the prefix of several AIDs
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
    this.#labels ??= this.#sources.labels();
    const labels = Object.entries(await this.#labels);
    const found = labels.find(([, label]) => label.toLowerCase() === typed)?.[0] ?? (await this.#named(typed));
    if (found !== undefined) return found;
    if (typed.startsWith('aid1'))
      throw new SvcError('bad_aid', {
        message: `"${text}" is not a valid AID: it has a typo, or a part is missing. Copy the whole AID. "svc agents --full" prints your own.`,
      });
    throw new SvcError('bad_aid', {
      message: `"${text}" is neither an AID nor a label in your address book (svc alias list). Check it for typos, or add the label with "svc alias add".`,
    });
  }

  /** The local agent with this name, or the only AID with this prefix. */
  async #named(typed: string): Promise<string | undefined> {
    const names = await this.names().catch(() => new Map<string, string>());
    for (const [aid, name] of names) if (name.toLowerCase() === typed) return aid;
    if (!BEGINNING.test(typed) || typed.length < SHOWN_AID_CHARS) return undefined;
    const known = await this.#sources.known(await (this.#own ?? []));
    const found = [...new Set([...names.keys(), ...known])].filter((aid) => aid.toLowerCase().startsWith(typed));
    if (found.length > 1)
      throw new SvcError('invalid_request', {
        message: `"${typed}" matches ${found.length} AIDs: ${found.join(', ')}. Type more characters.`,
      });
    return found[0];
  }
}
