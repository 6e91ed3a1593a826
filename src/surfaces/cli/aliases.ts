/** Labels of the user's address book, usable wherever a command takes an AID. */
import { SvcError } from '../../foundation/errors.ts';

/** AID to label. */
type Labels = Readonly<Record<string, string>>;

export class Aliases {
  readonly #read: () => Promise<Labels>;
  #labels: Promise<Labels> | undefined;

  /** @param read asks for the address book; called once, and only where something is no AID */
  constructor(read: () => Promise<Labels>) {
    this.#read = read;
  }

  /**
   * The AID that a text is or stands for, whatever the case of a label.
   * @throws SvcError `bad_aid` where it is neither
   */
  async aid(text: string): Promise<string> {
    // Brings hashes and encodings, which a command without an AID does without.
    const { parseAid } = await import('../../foundation/identity/aid.ts');
    try {
      return parseAid(text);
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
    }
    this.#labels ??= this.#read();
    const wanted = text.trim().toLowerCase();
    const found = Object.entries(await this.#labels).find(([, label]) => label.toLowerCase() === wanted);
    if (found !== undefined) return found[0];
    throw new SvcError('bad_aid', {
      message: `"${text}" is neither an AID nor a label of your address book (svc alias list shows those). A native AID starts with "aid1"; check it for a mistyped character.`,
    });
  }
}
