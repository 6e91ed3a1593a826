/** What stands for an AID wherever a command takes one: a label of the user's address book, the name of an agent here, the beginning of an AID. */
import { SvcError } from '../../foundation/errors.ts';
import { namesFrom, SHOWN_AID_CHARS } from './names.ts';

/** AID to label. */
type Labels = Readonly<Record<string, string>>;
type Own = readonly { readonly aid: string; readonly name?: string | undefined }[];

/** Where names and AIDs are read; each is asked at most once, and only where something is no AID. */
export interface AliasSources {
  readonly labels: () => Promise<Labels>;
  /** The agents of the node. */
  readonly own: () => Promise<Own>;
  /** AIDs that the node knows. */
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

  /** The names that agents are shown by. @throws SvcError where they cannot be asked for */
  async names(): Promise<Map<string, string>> {
    this.#labels ??= this.#sources.labels();
    this.#own ??= this.#sources.own();
    const [labels, own] = await Promise.all([this.#labels, this.#own]);
    return namesFrom(labels, own);
  }

  /**
   * The AID that a text is or stands for, whatever the case of a name.
   * @throws SvcError `bad_aid` where it is none of them, `invalid_request` where it is the beginning of several AIDs
   */
  async aid(text: string): Promise<string> {
    // Brings hashes and encodings, which a command without an AID does without.
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
    throw new SvcError('bad_aid', {
      message: `"${text}" is neither an AID nor a label of your address book (svc alias list shows those). A native AID starts with "aid1"; check it for a mistyped character.`,
    });
  }

  /** The agent here that is called so, or the one AID that begins so. */
  async #named(typed: string): Promise<string | undefined> {
    const names = await this.names().catch(() => new Map<string, string>());
    for (const [aid, name] of names) if (name.toLowerCase() === typed) return aid;
    if (!BEGINNING.test(typed) || typed.length < SHOWN_AID_CHARS) return undefined;
    const known = await this.#sources.known(await (this.#own ?? []));
    const found = [...new Set([...names.keys(), ...known])].filter((aid) => aid.toLowerCase().startsWith(typed));
    if (found.length > 1)
      throw new SvcError('invalid_request', {
        message: `"${typed}" is the beginning of ${found.length} AIDs: ${found.join(', ')}. Type more of it.`,
      });
    return found[0];
  }
}
