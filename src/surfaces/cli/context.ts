/** The context of a command: the client, the global options, and helpers for output. */

import type { Command } from 'commander';
import { isStopped, recordedDaemonAddress, runningDaemonAddress } from '../../foundation/data-dir/daemon-info.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { LabelBook, NamedAgents } from '../../foundation/labels.ts';
import { MAX_LISTED_AGENTS, severalAgents } from '../../foundation/several-agents.ts';
import { type ClientOptions, createClient } from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import { ChosenAgent } from './chosen-agent.ts';
import { cliClient, type OperationName, type SvcClient } from './client.ts';
import { daemonFetch } from './daemon-fetch.ts';
import { type CliIo, prompt, readStandardInput } from './input.ts';
import { Aliases, aidsIn, Names } from './names.ts';
import { safeText } from './text.ts';

// The rule for secrets on standard input.

/** The rule, as help shows it. */
export const PIPED_SECRETS = 'Secrets from standard input: the first line is the secret. A second line must repeat it.';

/**
 * The secret in piped text.
 * @throws SvcError `invalid_request` if anything but a repetition follows: its owner would not know the actual secret
 */
function pipedSecret(text: string): string {
  const [secret = '', ...others] = text.split(/\r?\n/);
  if (others.every((line) => line === '' || line === secret)) return secret;
  throw new SvcError('invalid_request', { message: `Nothing was done: the lines differ. ${PIPED_SECRETS}` });
}

// Shows a spinner on a terminal during long work. Silent in a pipe, and for short work.

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const FRAME_MS = 80;
/** Delay before the spinner, milliseconds. */
const SHOW_AFTER_MS = 300;

/** Runs `work` with a spinner on stderr. */
async function withProgress<T>(io: CliIo, what: string, work: Promise<T>): Promise<T> {
  if (io.stderr.isTTY !== true) return work;
  let frame = 0;
  let shown = false;
  const started = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - started < SHOW_AFTER_MS) return;
    shown = true;
    io.stderr.write(`\r${FRAMES[frame++ % FRAMES.length]} ${what} …`);
  }, FRAME_MS);
  try {
    return await work;
  } finally {
    clearInterval(timer);
    if (shown) io.stderr.write('\r\u001b[2K');
  }
}

/** Largest secret that is read, bytes. */
const MAX_SECRET_BYTES = 64 * 1024;

/** Largest number of local agents whose names are resolved and shown. */
const MAX_OWN = 200;

/** Options of every command. */
export interface GlobalOptions {
  readonly api?: string;
  readonly token?: string;
  /** Send the token without a proof that the daemon knows it. */
  readonly sendToken?: boolean;
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** Show complete AIDs and IDs to people. */
  readonly full?: boolean;
  /** The local agent that acts: its AID or label. */
  readonly as?: string;
  /** The remote node to administer: its AID or label. */
  readonly via?: string;
  /** The local identity that sends the requests. Default: the agent in use, or else the node. */
  readonly viaAs?: string;
  /** Prompt for the password of the remote node. */
  readonly viaPassword?: boolean;
}

/** The connection to a remote node. */
export interface Via {
  readonly aid: string;
  /** Headers of each request to the local daemon: the password, and the requesting identity. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The labels of this user. Empty if the daemon has no address book. */
async function readBook(local: SvcClient): Promise<LabelBook> {
  try {
    return await local.addressBookGet();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'not_found') return { aliases: {} };
    throw error;
  }
}

export class CliContext {
  readonly io: CliIo;
  readonly options: GlobalOptions;
  readonly #dataDir: string | SvcError;
  readonly #userDir: string | null;
  /** Reads the address again while no daemon uses the named directory, because one may start. */
  readonly #findApi: () => string | SvcError;
  #api: string | SvcError;
  readonly #via: Via | undefined;
  readonly #aliases: Aliases;
  /** The answer to the question which agent acts. */
  #asked: Promise<string> | undefined;
  #fetches: ReturnType<typeof daemonFetch> | undefined;
  /** The part of the response that `showFirstPart` has printed. */
  printedPart: { readonly text: string; readonly made: string } | undefined;

  /**
   * @param defaultDataDir the error if this user has none
   * @param via the remote node to administer; the local daemon if omitted
   */
  constructor(io: CliIo, options: GlobalOptions, defaultDataDir: string | SvcError, via?: Via) {
    this.io = io;
    this.options = options;
    this.#via = via;
    const stated = options.api ?? io.env['SVC_API'];
    const named = io.env['SVCD_DATA_DIR'];
    this.#dataDir = named ?? defaultDataDir;
    const usual = typeof defaultDataDir === 'string' ? defaultDataDir : null;
    this.#userDir = usual;
    this.#findApi = () => stated ?? (named === undefined ? recordedDaemonAddress(usual) : runningDaemonAddress(named));
    this.#api = this.#findApi();
    const plain = (): SvcClient => createClient(this.connection, operations);
    this.#aliases = new Aliases({
      book: () => readBook(this.local),
      own: async () => {
        const { agents } = await plain()
          .agentsList({ limit: MAX_OWN })
          .catch(() => ({ agents: [] }));
        return agents;
      },
      known: async (own) => (await import('./seen-aids.ts')).seenAids(plain(), own),
    });
  }

  /**
   * Default data directory of this user's daemon.
   * @throws SvcError if there is none
   */
  get dataDir(): string {
    if (this.#dataDir instanceof SvcError) throw this.#dataDir;
    return this.#dataDir;
  }

  /** Why no daemon can be reached. Null if its address is known. Commands that need no daemon work anyway. */
  get addressError(): SvcError | null {
    return this.#api instanceof SvcError ? this.#api : null;
  }

  /**
   * The address of the local daemon.
   * @throws SvcError `daemon_unreachable` if no daemon uses the named directory
   */
  get api(): string {
    if (this.#api instanceof SvcError) this.#api = this.#findApi();
    if (this.#api instanceof SvcError) throw this.#api;
    return this.#api;
  }

  /** @throws SvcError as `api` does */
  get #here(): ClientOptions {
    const token = this.options.token ?? this.io.env['SVC_TOKEN'];
    const baseUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(this.api) ? this.api : `http://${this.api}`;
    this.#fetches ??= this.#noticing(
      baseUrl,
      daemonFetch({
        baseUrl,
        token: this.options.sendToken === true ? '' : (token ?? ''),
        dataDir: this.#dataDir instanceof SvcError ? null : this.#dataDir,
      }),
    );
    return { baseUrl, ...this.#fetches, ...(token === undefined ? {} : { token }) };
  }

  /** Tells a person that the daemon of another user or directory answers, because their own one does not run. */
  #noticing(baseUrl: string, fetches: ReturnType<typeof daemonFetch>): ReturnType<typeof daemonFetch> {
    const { options, io } = this;
    const isStated = options.api !== undefined || io.env['SVC_API'] !== undefined;
    const own = this.#userDir;
    if (isStated || io.env['SVCD_DATA_DIR'] !== undefined || io.stderr.isTTY !== true) return fetches;
    if (own === null || !isStopped(own)) return fetches;
    let isTold = false;
    return {
      ...fetches,
      fetch: async (url, init) => {
        const answer = await (fetches.fetch ?? fetch)(url, init);
        if (!isTold)
          this.info(
            `Your daemon (${own}) does not run. Another one answers at ${baseUrl}. Start yours with "svcd", or set SVC_API=${baseUrl}.`,
          );
        isTold = true;
        return answer;
      },
    };
  }

  /** Base URL and token of the target node. @throws SvcError as `api` does */
  get connection(): ClientOptions {
    const here = this.#here;
    const via = this.#via;
    return via === undefined ? here : { ...here, baseUrl: `${here.baseUrl}/via/${via.aid}`, headers: via.headers };
  }

  /** The local daemon, even with --via. @throws SvcError as `api` does */
  get local(): SvcClient {
    return createClient(this.#here, operations);
  }

  /**
   * The target node. Its client accepts labels in place of AIDs.
   * @throws SvcError as `api` does
   */
  get client(): SvcClient {
    return cliClient(this.connection, { aliases: this.#aliases, chooseAgent: () => this.#choose() });
  }

  /** Calls an operation by name. @throws SvcError as the method of the client does */
  call(name: OperationName, input: object): Promise<unknown> {
    const method: (input: object) => Promise<unknown> = Reflect.get<object, string>(this.client, name);
    return method(input);
  }

  /** Resolves a text to an AID. @throws SvcError `bad_aid` */
  aid(text: string): Promise<string> {
    return this.#aliases.aid(text);
  }

  /** The names to show for the agents in a response. */
  async names(answer: unknown): Promise<Names> {
    const aids = aidsIn(answer);
    const full = this.options.full === true;
    // Without names the response shows AIDs.
    const names = aids.size === 0 ? null : await this.#aliases.names().catch(() => null);
    return new Names(names ?? new Map(), aids, full);
  }

  /** Width of the terminal in columns, or infinity if unknown. */
  get width(): number {
    const { stdout, env } = this.io;
    const columns = stdout.isTTY === true ? stdout.columns : Number(env['COLUMNS']);
    return columns !== undefined && columns > 0 ? columns : Number.POSITIVE_INFINITY;
  }

  /** True if a person reads the output and can be asked. */
  get interactive(): boolean {
    const { io, options } = this;
    return options.json !== true && options.quiet !== true && io.stdin.isTTY === true && io.stdout.isTTY === true;
  }

  /** Waits for work and shows progress on a terminal. Shows nothing without a text. */
  progress<T>(what: string | undefined, work: Promise<T>): Promise<T> {
    const { quiet, json } = this.options;
    return what === undefined || quiet === true || json === true ? work : withProgress(this.io, what, work);
  }

  /**
   * Reads a secret: from a hidden prompt, or from the first line of standard input if it is not a terminal.
   * @throws SvcError `cancelled` if the prompt is aborted, `invalid_request` if more than the secret is piped,
   *   `too_large`
   */
  async readSecret(question: string): Promise<string> {
    if (this.io.stdin.isTTY === true) return prompt(this.io, question, true);
    return pipedSecret((await readStandardInput(this.io, MAX_SECRET_BYTES)).toString('utf8'));
  }

  /** Prints to stderr, whatever the options are. */
  warn(text: string): void {
    this.io.stderr.write(`${safeText(text)}\n`);
  }

  /** Prints information for people to stderr. Omitted with --json and --quiet. */
  info(text: string): void {
    if (this.options.json !== true && this.options.quiet !== true) this.warn(text);
  }

  /**
   * Waits for work that needs a local agent, and adds a hint to the error if the agent is not registered here.
   * @throws SvcError what the work throws
   */
  async withLocalAgentHint<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== 'not_found') throw error;
      throw new SvcError('not_found', { message: `${error.message} "svc agents" lists your agents.`, cause: error });
    }
  }

  /** The stored choice of `svc use` for the local daemon. */
  get choice(): ChosenAgent {
    const { api } = this.options;
    const isNamed = api !== undefined || this.io.env['SVC_API'] !== undefined;
    const dataDir = this.#dataDir instanceof SvcError ? null : this.#dataDir;
    return new ChosenAgent({
      dataDir: isNamed ? null : dataDir,
      userDir: this.#userDir,
      api: () => this.#here.baseUrl,
    });
  }

  /** The local agent selected by SVC_AID or by "svc use". Undefined if none is. */
  get inUse(): { readonly aid: string; readonly why: 'env' | 'use' } | undefined {
    const named = this.io.env['SVC_AID'];
    if (named !== undefined && named !== '') return { aid: named, why: 'env' };
    const used = this.addressError === null ? this.choice.read() : undefined;
    return used === undefined ? undefined : { aid: used, why: 'use' };
  }

  /** The agent in use, unless the command runs on another node, which has other agents. */
  get chosen(): { readonly aid: string; readonly why: 'env' | 'use' } | undefined {
    return this.options.via === undefined ? this.inUse : undefined;
  }

  /**
   * The local agent to use if none is named, and why: the selected one, the only one, or the user's choice.
   * @throws SvcError `local_aid_required` if there are several, `not_found` if there is none
   */
  async acting(): Promise<{ aid: string; why: 'env' | 'use' | 'only' | 'asked' }> {
    const { chosen } = this;
    if (chosen !== undefined) return { aid: await this.aid(chosen.aid), why: chosen.why };
    const [first, second] = await this.#agents(2);
    if (first === undefined)
      throw new SvcError('not_found', { message: 'No agent is registered here. Create one with "svc register".' });
    return second === undefined ? { aid: first.aid, why: 'only' } : { aid: await this.#choose(), why: 'asked' };
  }

  /**
   * The user's choice from several agents, if none is selected. Undefined if there is at most one.
   * @throws SvcError `local_aid_required` if there are several
   */
  async oneOfSeveral(): Promise<string | undefined> {
    return (await this.#agents(2)).length < 2 ? undefined : this.#choose();
  }

  /** Local agents of the target node. */
  async #agents(limit: number): Promise<NamedAgents> {
    return (await createClient(this.connection, operations).agentsList({ limit })).agents;
  }

  /** Asks a person which of several agents acts. @throws SvcError `local_aid_required` without a terminal */
  #choose(): Promise<string> {
    this.#asked ??= this.#ask();
    return this.#asked;
  }

  async #ask(): Promise<string> {
    const agents = (await this.#agents(MAX_LISTED_AGENTS + 1)).map(({ aid, name }) => ({ aid, name }));
    const names = await this.names(agents);
    const known = agents.map(({ aid, name }) => ({ aid, name: names.nameOf(aid) ?? name }));
    if (!this.interactive)
      throw severalAgents(
        known,
        'Name one with --as, or select one for all commands with "svc use <agent>". "svc agents" lists them.',
        (aid) => names.short(aid),
      );
    const listed = known.slice(0, MAX_LISTED_AGENTS);
    const lines = listed.map(({ aid, name }, i) =>
      `${String(i + 1).padStart(4)}  ${names.short(aid)}  ${name ?? ''}`.trimEnd(),
    );
    this.info(
      ['Several agents are registered:', ...lines, '"svc use <agent>" selects one for all commands.'].join('\n'),
    );
    const typed = (await prompt(this.io, `Which one acts? [1-${listed.length}] `, false)).trim();
    const number = /^\d{1,3}$/.test(typed) ? Number(typed) : 0;
    const chosen = listed[number - 1];
    if (chosen === undefined)
      throw new SvcError('local_aid_required', {
        message: `Nothing was done: "${typed}" is not a number of this list.`,
      });
    return chosen.aid;
  }

  /** The local agent of a command: the named one, or as `acting`. @throws SvcError as `acting` */
  async localAgent(named: string | undefined): Promise<string> {
    return named === undefined ? (await this.acting()).aid : this.aid(named);
  }
}

/** Creates the context of a command once its options are parsed. */
export type ContextOf = (command: Command) => CliContext;
