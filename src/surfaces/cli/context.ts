/** What every command has at hand: the client, the global options, and how results are shown. */
import type { Command } from 'commander';
import { addressIn, addressInNamed } from '../../foundation/data-dir/daemon-address.ts';
import { SvcError } from '../../foundation/errors.ts';
import { type ClientOptions, createClient } from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import { Aliases } from './aliases.ts';
import { chosenAgent } from './chosen-agent.ts';
import { cliClient, type OperationName, type SvcClient } from './client.ts';
import { daemonFetch } from './daemon-fetch.ts';
import type { CliIo } from './io.ts';
import { aidsIn, Names } from './names.ts';
import { pipedSecret } from './piped-secret.ts';
import { withProgress } from './progress.ts';
import { ask } from './prompt.ts';
import { readStandardInput } from './standard-input.ts';
import { safeText } from './text.ts';

/** Longest secret that is read, bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

/** Agents here that are shown by their names, and found by them. */
const MAX_OWN = 200;

/** Options that every command takes. */
export interface GlobalOptions {
  readonly api?: string;
  readonly token?: string;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** AIDs and ids are shown whole to people. */
  readonly full?: boolean;
  /** Another node that the command is meant for: its AID, or a label for it. */
  readonly via?: string;
  /** The identity here that asks the other node. */
  readonly viaAs?: string;
  /** Ask for the other node's password. */
  readonly viaPassword?: boolean;
}

/** The way to a remote node. */
export interface Via {
  readonly aid: string;
  /** What each request tells the daemon here: the password, and who asks. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The labels of this machine's user; none where an older daemon has no address book. */
async function readLabels(local: SvcClient): Promise<Readonly<Record<string, string>>> {
  try {
    return (await local.addressBookGet()).aliases;
  } catch (error) {
    if (error instanceof SvcError && error.code === 'not_found') return {};
    throw error;
  }
}

export class CliContext {
  readonly io: CliIo;
  readonly options: GlobalOptions;
  readonly #dataDir: string | SvcError;
  readonly #api: string | SvcError;
  readonly #via: Via | undefined;
  readonly #aliases: Aliases;
  #fetches: ReturnType<typeof daemonFetch> | undefined;
  /** What `showBeginning` has written of the answer. */
  begun: { readonly text: string; readonly made: string } | undefined;

  /**
   * @param defaultDataDir the error where this user has none
   * @param via the way to the node that the command is meant for; left out: the daemon on this machine
   */
  constructor(io: CliIo, options: GlobalOptions, defaultDataDir: string | SvcError, via?: Via) {
    this.io = io;
    this.options = options;
    this.#via = via;
    const stated = options.api ?? io.env['SVC_API'];
    const named = io.env['SVCD_DATA_DIR'];
    this.#dataDir = named ?? defaultDataDir;
    this.#api =
      stated ??
      (named === undefined
        ? addressIn(typeof defaultDataDir === 'string' ? defaultDataDir : null)
        : addressInNamed(named));
    const plain = (): SvcClient => createClient(this.connection, operations);
    this.#aliases = new Aliases({
      labels: () => readLabels(this.local),
      own: async () => {
        const { agents } = await plain()
          .agentsList({ limit: MAX_OWN })
          .catch(() => ({ agents: [] }));
        return agents;
      },
      known: async (own) => (await import('./known-aids.ts')).knownAids(plain(), own),
    });
  }

  /**
   * Where a daemon of this user keeps its data unless its process was told otherwise.
   * @throws SvcError where this user has no such place
   */
  get dataDir(): string {
    if (this.#dataDir instanceof SvcError) throw this.#dataDir;
    return this.#dataDir;
  }

  /** Why there is no daemon to ask; null where one has an address. Commands that ask none work all the same. */
  get absence(): SvcError | null {
    return this.#api instanceof SvcError ? this.#api : null;
  }

  /**
   * The address of the daemon on this machine, as the user knows it.
   * @throws SvcError `daemon_unreachable` where none runs on the directory that was named
   */
  get api(): string {
    if (this.#api instanceof SvcError) throw this.#api;
    return this.#api;
  }

  /** @throws SvcError as `api` does */
  get #here(): ClientOptions {
    const token = this.options.token ?? this.io.env['SVC_TOKEN'];
    const baseUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(this.api) ? this.api : `http://${this.api}`;
    this.#fetches ??= daemonFetch({
      baseUrl,
      token: token ?? '',
      dataDir: this.#dataDir instanceof SvcError ? null : this.#dataDir,
    });
    return { baseUrl, ...this.#fetches, ...(token === undefined ? {} : { token }) };
  }

  /** Where the node answers that the command is meant for, and the token for it. @throws SvcError as `api` does */
  get connection(): ClientOptions {
    const here = this.#here;
    const via = this.#via;
    return via === undefined ? here : { ...here, baseUrl: `${here.baseUrl}/via/${via.aid}`, headers: via.headers };
  }

  /** The daemon on this machine, whatever node the command is meant for. @throws SvcError as `api` does */
  get local(): SvcClient {
    return createClient(this.#here, operations);
  }

  /**
   * The node that the command is meant for; it takes labels of the address book for AIDs.
   * @throws SvcError as `api` does
   */
  get client(): SvcClient {
    return cliClient(this.connection, this.#aliases);
  }

  /** Calls an operation by its name. @throws SvcError as the method of the client does */
  call(name: OperationName, input: object): Promise<unknown> {
    const method: (input: object) => Promise<unknown> = Reflect.get<object, string>(this.client, name);
    return method(input);
  }

  /** The AID that a text is, or stands for in the address book of this machine's user. @throws SvcError `bad_aid` */
  aid(text: string): Promise<string> {
    return this.#aliases.aid(text);
  }

  /** The names for people of the agents in an answer. */
  async names(answer: unknown): Promise<Names> {
    const aids = aidsIn(answer);
    const full = this.options.full === true;
    // Without them the answer is no worse than its AIDs.
    const names = aids.size === 0 ? null : await this.#aliases.names().catch(() => null);
    return new Names(names ?? new Map(), aids, full);
  }

  /** Columns that a person sees; infinitely many where nobody says. */
  get room(): number {
    const { stdout, env } = this.io;
    const columns = stdout.isTTY === true ? stdout.columns : Number(env['COLUMNS']);
    return columns !== undefined && columns > 0 ? columns : Number.POSITIVE_INFINITY;
  }

  /** True where a person reads the result and can be asked. */
  get interactive(): boolean {
    const { io, options } = this;
    return options.json !== true && options.quiet !== true && io.stdin.isTTY === true && io.stdout.isTTY === true;
  }

  /** Waits for work and says on a terminal that it goes on; says nothing where there is no word for it. */
  progress<T>(what: string | undefined, work: Promise<T>): Promise<T> {
    const { quiet, json } = this.options;
    return what === undefined || quiet === true || json === true ? work : withProgress(this.io, what, work);
  }

  /**
   * A secret: from a prompt that does not show it, or the first line of standard input where that is no terminal.
   * @throws SvcError `cancelled` where nobody types one, `invalid_request` where more is piped than it, `too_large`
   */
  async readSecret(prompt: string): Promise<string> {
    if (this.io.stdin.isTTY === true) return ask(this.io, prompt, true);
    return pipedSecret((await readStandardInput(this.io, MAX_SECRET_BYTES)).toString('utf8'));
  }

  /** What must be seen whatever the options are, on stderr. */
  warn(text: string): void {
    this.io.stderr.write(`${safeText(text)}\n`);
  }

  /** A remark for people, on stderr; left out with --json and --quiet. */
  note(text: string): void {
    if (this.options.json !== true && this.options.quiet !== true) this.warn(text);
  }

  /**
   * Waits for work with an agent that has to be registered here, and says where to look where it is not.
   * @throws SvcError what the work throws
   */
  async withOwn<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
      throw new SvcError('not_found', { message: `${error.message} "svc agents" lists those that are.`, cause: error });
    }
  }

  /** The agent that was chosen to act, by SVC_AID or by "svc use" for the daemon here; undefined where none was. */
  get chosen(): { readonly aid: string; readonly why: 'env' | 'use' } | undefined {
    const named = this.io.env['SVC_AID'];
    if (named !== undefined && named !== '') return { aid: named, why: 'env' };
    const isElsewhere =
      this.options.api !== undefined || this.io.env['SVC_API'] !== undefined || this.options.via !== undefined;
    const used = isElsewhere ? undefined : typeof this.#dataDir === 'string' ? chosenAgent(this.#dataDir) : undefined;
    return used === undefined ? undefined : { aid: used, why: 'use' };
  }

  /**
   * The local agent that acts where none is named, and why: one that was chosen, or the only one here.
   * @throws SvcError `local_aid_required` where several are registered, `not_found` where none is
   */
  async acting(): Promise<{ aid: string; why: 'env' | 'use' | 'only' }> {
    const { chosen } = this;
    if (chosen !== undefined) return { aid: await this.aid(chosen.aid), why: chosen.why };
    const { agents } = await this.client.agentsList({ limit: 2 });
    const [first, second] = agents;
    if (first === undefined)
      throw new SvcError('not_found', { message: 'No agent is registered here. Make one with "svc register".' });
    if (second !== undefined)
      throw new SvcError('local_aid_required', {
        message: 'Several agents are registered here: name one with --aid, or choose one with "svc use <agent>".',
      });
    return { aid: first.aid, why: 'only' };
  }

  /** The local agent that a command acts for: the one that is named, or as `acting`. @throws SvcError as `acting` */
  async localAgent(named: string | undefined): Promise<string> {
    return named === undefined ? (await this.acting()).aid : this.aid(named);
  }
}

/** Makes the context of the command that runs; called once its options are known. */
export type ContextOf = (command: Command) => CliContext;
