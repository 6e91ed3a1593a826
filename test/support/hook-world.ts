/** Hooks with a stub for their items, on a real store with real programs. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { type HookItems, type HookState, Hooks } from '../../src/capabilities/hooks/hooks.ts';
import { ProgramRun } from '../../src/capabilities/hooks/program-run.ts';
import type { EventType } from '../../src/foundation/events.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { newId } from '../../src/foundation/ids.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { HookStore, type NewHook } from '../../src/foundation/store/hooks.ts';
import { storeWithAgents } from '../foundation/store/store-with-agents.ts';
import { testAid } from './agents.ts';
import { eventually } from './eventually.ts';
import { temporaryDirectory } from './temporary-directory.ts';
import { TestClock } from './test-clock.ts';

export class HookWorld {
  readonly clock = new TestClock();
  readonly folder: string;
  readonly aid: Aid;
  readonly database = storeWithAgents(1);
  readonly store = new HookStore(this.database.store);
  readonly known = new Set<Aid>();
  /** Sender of each pending note, by message ID. */
  readonly notes = new Map<string, Aid>();
  /** The address of each stranger; unknown for all others. */
  readonly addresses = new Map<Aid, string>();
  readonly acknowledged: string[] = [];
  readonly emitted: EventType[] = [];
  /** The senders of the items whose programs were started. */
  readonly started: (string | undefined)[] = [];
  /** The error of the next starts of programs. */
  startError: NodeJS.ErrnoException | null = null;
  /** The shells of the next starts find no process for their program, and end without a result. */
  forksFail = false;
  hooks: Hooks;

  constructor(t: TestContext) {
    // In the order of these lines, the programs end before their folder is removed.
    t.after(() => this.hooks.stop());
    this.folder = temporaryDirectory(t);
    const [aid] = this.database.aids;
    if (aid === undefined) throw new Error('no agent');
    this.aid = aid;
    this.hooks = this.open();
  }

  /** Another daemon on the same store. */
  open(): Hooks {
    const items: HookItems = {
      now: () => this.clock.now(),
      note: (_, messageId) => {
        const sender = this.notes.get(messageId);
        return sender === undefined ? null : { sender, msgType: 3 };
      },
      addressOf: (peer) => this.addresses.get(peer) ?? null,
      chatEntryId: () => null,
      load: (_aid, _peer, ref) =>
        ref.kind === 'note' && this.notes.has(ref.messageId) ? { note: { message_id: ref.messageId } } : null,
      acknowledge: (_aid, _peer, ref) => {
        if (ref.kind === 'note') this.acknowledged.push(ref.messageId);
      },
    };
    this.hooks = new Hooks({
      store: this.store,
      items,
      events: {
        emit: (_, type) => {
          this.emitted.push(type);
          return 0;
        },
      },
      clock: this.clock,
      log: silentLog,
      directory: join(this.folder, 'runs'),
      environment: () => ({ PATH: process.env['PATH'] ?? '' }),
      isKnown: (_, peer) => this.known.has(peer),
      start: async (...args) => {
        if (this.startError !== null) throw this.startError;
        const [dir, clock, program] = args;
        this.started.push(program.environment['SVC_FROM']);
        if (!this.forksFail) return ProgramRun.start(dir, clock, program);
        const command = ['/bin/sh', '-c', 'rm "$1/begun"; echo "Cannot fork"; kill -KILL 0', 'sh', dir];
        return ProgramRun.start(dir, clock, { ...program, command, shell: false });
      },
    });
    return this.hooks;
  }

  /** A hook that runs a text in a shell. */
  add(script: string, more: Partial<NewHook> = {}): HookState {
    return this.hooks.add({
      id: newId(),
      aid: this.aid,
      kind: 'note',
      command: [script],
      shell: true,
      folder: this.folder,
      senders: [],
      onlyKnown: false,
      parallel: 4,
      timeoutMs: 60_000,
      createdAt: this.clock.now(),
      ...more,
    });
  }

  /** Notes of one sender arrive. */
  receive(sender: Aid, ...ids: readonly string[]): void {
    for (const id of ids) this.notes.set(id, sender);
    this.database.store.transaction(() =>
      this.hooks.emitted(this.aid, 'mailbox.received', { count: ids.length, message_ids: ids }),
    );
  }

  /** From now on, the disk rejects changes of deliveries. Returns a function that ends this. */
  fillDisk(): () => void {
    const { store } = this.database;
    store.run`CREATE TRIGGER disk BEFORE UPDATE ON hook_deliveries BEGIN SELECT RAISE(ABORT, 'full'); END`;
    return () => store.run`DROP TRIGGER disk`;
  }

  /** Lets the clock run until something holds. */
  until<T>(what: string, check: () => T | false | undefined): Promise<T> {
    return eventually(what, async () => {
      await this.clock.run(1);
      return check();
    });
  }

  /** Lines that programs wrote to a file in their folder. */
  lines(name = 'log'): string[] {
    const file = join(this.folder, name);
    return existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
  }
}

export const stranger: Aid = testAid(101);
export const friend: Aid = testAid(102);
