/** Logs the result of `svcd --join`. */
import { formatContact, type NodeContact } from '../foundation/address.ts';
import type { Timer } from '../foundation/clock.ts';
import { detach } from '../foundation/detached.ts';
import type { SvcError } from '../foundation/errors.ts';
import type { Component } from '../foundation/lifecycle.ts';
import type { NodeParts } from '../foundation/node-parts.ts';
import type { RecordDht } from '../network/records/record-dht.ts';

/** Without an answer for this time, the cause is logged, milliseconds. Attempts continue. */
const REPORT_MS = 10_000;

interface JoinReportDependencies extends NodeParts {
  readonly records: Pick<RecordDht, 'reachability' | 'onReachability'>;
  /** The cause if no node answered since that time. */
  readonly explainFailure: (since: number) => Promise<SvcError | null>;
}

export class JoinReport implements Component {
  readonly #contacts: readonly NodeContact[];
  readonly #deps: JoinReportDependencies;
  #timer: Timer | null = null;
  #stopListening = (): void => {};

  /** @param contacts the nodes to join through, without this node */
  constructor(contacts: readonly NodeContact[], dependencies: JoinReportDependencies) {
    this.#contacts = contacts;
    this.#deps = dependencies;
  }

  async start(): Promise<void> {
    const { clock, log, records } = this.#deps;
    if (this.#contacts.length === 0) {
      log.warn({}, 'the invitation of --join leads to this node: use it on another machine');
      return;
    }
    const begunAt = clock.now();
    this.#timer = clock.after(REPORT_MS, () => detach(this.#explain(begunAt)));
    this.#stopListening = records.onReachability(({ ready, peers }) => {
      if (!ready) return;
      log.info({ peers }, 'joined the network');
      this.#end();
    });
  }

  async stop(): Promise<void> {
    this.#end();
  }

  #end(): void {
    this.#timer?.cancel();
    this.#timer = null;
    this.#stopListening();
  }

  async #explain(since: number): Promise<void> {
    const error = await this.#deps.explainFailure(since);
    if (this.#timer === null) return;
    const contacts = this.#contacts.map(formatContact);
    this.#deps.log.warn({ contacts }, `the network is not joined yet: ${error?.message ?? 'No contact answers.'}`);
  }
}
