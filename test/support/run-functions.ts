/** The functions of src that ran in this process, counted by V8. Functions with the same source text count once. */
import { Session } from 'node:inspector/promises';

const SRC = new URL('../../src/', import.meta.url).href;

export class RunFunctions {
  readonly #session = new Session();

  /** Begins to count. Earlier runs do not count. */
  static async start(): Promise<RunFunctions> {
    const made = new RunFunctions();
    made.#session.connect();
    await made.#session.post('Profiler.enable');
    await made.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
    return made;
  }

  /** The functions that ran since the last call, as `file name@offset`. */
  async take(): Promise<Set<string>> {
    const { result } = await this.#session.post('Profiler.takePreciseCoverage');
    const ran = result
      .filter(({ url }) => url.startsWith(SRC))
      .flatMap(({ url, functions }) =>
        functions
          .filter(({ ranges }) => (ranges[0]?.count ?? 0) > 0)
          .map(({ functionName, ranges }) => `${url.slice(SRC.length)} ${functionName}@${ranges[0]?.startOffset}`),
      );
    return new Set(ran);
  }

  [Symbol.dispose](): void {
    this.#session.disconnect();
  }
}
