/** What an examination says of one thing. */

/** Only FAIL makes an examination fail. */
export type Level = 'PASS' | 'FAIL' | 'WARN' | 'INFO';

export interface Finding {
  /** What was examined: a stable word, for programs. */
  readonly check: Check;
  readonly level: Level;
  readonly what: string;
  /** What to do about it. */
  readonly hint?: string | undefined;
}

export type Check =
  | 'daemon'
  | 'version'
  | 'token'
  | 'config'
  | 'network'
  | 'clock'
  | 'reachability'
  | 'publication'
  | 'service'
  | 'mcp'
  | 'data'
  | 'keys'
  | 'disk'
  | 'start'
  | 'update';

/** The ways to say something of one check. A failure and a warning always come with a hint. */
export function findingsOf(check: Check) {
  return {
    pass: (what: string): Finding => ({ check, level: 'PASS', what }),
    info: (what: string, hint?: string): Finding => ({ check, level: 'INFO', what, hint }),
    warn: (what: string, hint: string): Finding => ({ check, level: 'WARN', what, hint }),
    fail: (what: string, hint: string): Finding => ({ check, level: 'FAIL', what, hint }),
  };
}
