/** A reporter for `node --test` that writes each finished test as a line of JSON, for `job.ts`. */

/** A finished test. */
export interface TestEvent {
  readonly passed: boolean;
  readonly name: string;
  /** Absolute path. */
  readonly file: string | null;
  readonly isTopLevel: boolean;
  /** Milliseconds. */
  readonly took: number;
  /** Why it was skipped; null if it ran. */
  readonly skipped: string | null;
}

interface Event {
  readonly type: string;
  readonly data?: {
    readonly name?: string;
    readonly file?: string;
    readonly nesting?: number;
    readonly skip?: string | boolean;
    readonly details?: { readonly duration_ms?: number };
  };
}

export default async function* testEvents(events: AsyncIterable<Event>): AsyncGenerator<string> {
  for await (const { type, data = {} } of events) {
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    const { name = '', file = null, nesting = 0, skip, details } = data;
    const skipped = skip === undefined || skip === false ? null : typeof skip === 'string' ? skip : '';
    const passed = type === 'test:pass';
    const event: TestEvent = {
      passed,
      name,
      file,
      isTopLevel: nesting === 0,
      took: details?.duration_ms ?? 0,
      skipped,
    };
    yield `${JSON.stringify(event)}\n`;
  }
}
