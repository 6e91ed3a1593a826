/** Labels of the user's address book, usable wherever a command takes an AID. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import type { CallOptions, Client } from '../../operations/client.ts';
import { bodyInputKey, type Declaration } from '../../operations/operation.ts';
import { AID_FORMAT } from '../../operations/schemas.ts';

/** AID to label. */
type Labels = Readonly<Record<string, string>>;
type Input = Readonly<Record<string, unknown>>;
type Method = (input?: Input, options?: CallOptions) => Promise<unknown>;

function isAid(text: string): boolean {
  try {
    parseAid(text);
    return true;
  } catch (error) {
    if (error instanceof SvcError) return false;
    throw error;
  }
}

/** Members of an operation's input that hold an AID. */
function aidKeys({ params, query, body }: Declaration): string[] {
  return [params, query, body].flatMap((part) =>
    Object.entries(part.properties)
      .filter(([, schema]) => Reflect.get(schema, 'format') === AID_FORMAT)
      .map(([key]) => (part === body ? bodyInputKey(key, params) : key)),
  );
}

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
    if (isAid(text)) return parseAid(text);
    this.#labels ??= this.#read();
    const wanted = text.trim().toLowerCase();
    const found = Object.entries(await this.#labels).find(([, label]) => label.toLowerCase() === wanted);
    if (found !== undefined) return found[0];
    throw new SvcError('bad_aid', {
      message: `"${text}" is neither an AID nor a label of your address book (svc alias list shows those). A native AID starts with "aid1"; check it for a mistyped character.`,
    });
  }

  /** The same client, taking labels for AIDs. */
  over<T extends Readonly<Record<string, Declaration>>>(client: Client<T>, declarations: T): Client<T> {
    const methods = Object.entries(declarations).map(([name, declaration]) => {
      const method = Reflect.get(client, name) as Method;
      const keys = aidKeys(declaration);
      if (keys.length === 0) return [name, method];
      return [
        name,
        async (input: Input = {}, options?: CallOptions) => method(await this.#translated(input, keys), options),
      ];
    });
    return Object.fromEntries(methods) as Client<T>;
  }

  async #translated(input: Input, keys: readonly string[]): Promise<Input> {
    const changed: Record<string, unknown> = { ...input };
    for (const key of keys) {
      const value = input[key];
      if (typeof value === 'string') changed[key] = await this.aid(value);
    }
    return changed;
  }
}
