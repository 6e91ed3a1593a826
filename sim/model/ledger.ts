/** Judges every answer by the declaration of its operation, and counts answers. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { Compile } from 'typebox/compile';
import { SvcError } from '../../src/foundation/errors.ts';
import { memberOf } from '../../src/foundation/json.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { errorCodes } from '../../src/surfaces/rest/openapi.ts';

/** Errors of any operation during a fault: the node stops, its disk fails, or the user gives up. */
const FAULT_CODES: ReadonlySet<string> = new Set(['cancelled', 'not_writable']);
const EVENT_OPERATIONS: ReadonlySet<string> = new Set(['eventsPoll', 'nodeEventsRecent']);

/** The code of success. */
export const OK = 'ok';

/** Numbers of answers by operation, user and code. */
export type Answers = Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, number>>>>>>;

/** The users that act now. */
export const acting: AsyncLocalStorage<string> = new AsyncLocalStorage();

type Check = (output: unknown) => string | null;

/** Compiled on first use, by operation. */
const checks = new Map<string, Check>();

function checkOf({ name, output }: Declaration): Check {
  const known = checks.get(name);
  if (known !== undefined) return known;
  const validator = Compile(output);
  const check: Check = (value) => {
    // As JSON has it.
    const sent: unknown = JSON.parse(JSON.stringify(value));
    if (validator.Check(sent)) return null;
    const [problem] = validator.Errors(sent);
    return `${problem?.instancePath} ${problem?.message}`;
  };
  checks.set(name, check);
  return check;
}

export class Ledger {
  readonly #violate: (guarantee: string, text: string) => void;
  readonly #answers: Record<string, Record<string, Record<string, number>>> = {};
  readonly #events: Record<string, number> = {};

  constructor(violate: (guarantee: string, text: string) => void) {
    this.#violate = violate;
  }

  get answers(): Answers {
    return this.#answers;
  }

  /** Numbers of events that were read, by type. */
  get events(): Readonly<Record<string, number>> {
    return this.#events;
  }

  readonly answered = (
    declaration: Declaration,
    answer: { readonly output: unknown } | { readonly error: unknown },
  ): void => {
    const { name } = declaration;
    if ('output' in answer) {
      this.#count(name, OK);
      const problem = checkOf(declaration)(answer.output);
      if (problem !== null) this.#violate('answers are as declared', `${name}: ${problem}`);
      if (EVENT_OPERATIONS.has(name)) this.#countEvents(answer.output);
      return;
    }
    const { error } = answer;
    const code = error instanceof SvcError ? error.code : 'unexpected';
    this.#count(name, code);
    if (code === 'internal' || !(FAULT_CODES.has(code) || errorCodes(declaration).some((one) => one === code)))
      this.#violate('answers are as declared', `${name}: ${error instanceof Error ? error.stack : String(error)}`);
  };

  #count(operation: string, code: string): void {
    const user = acting.getStore() ?? 'later checks';
    const ofUser = ((this.#answers[operation] ??= {})[user] ??= {});
    ofUser[code] = (ofUser[code] ?? 0) + 1;
  }

  #countEvents(output: unknown): void {
    const events = memberOf(output, 'events');
    for (const event of Array.isArray(events) ? events : []) {
      const type = String(memberOf(event, 'type'));
      this.#events[type] = (this.#events[type] ?? 0) + 1;
    }
  }
}
