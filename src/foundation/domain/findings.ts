/** Findings of the doctor. */

/** Only `FAIL` makes the examination fail. */
export const FINDING_LEVELS = ['PASS', 'FAIL', 'WARN', 'INFO'] as const;
export type Level = (typeof FINDING_LEVELS)[number];

/** The checks: stable words for programs. */
export const CHECKS = [
  'daemon',
  'version',
  'token',
  'config',
  'network',
  'clock',
  'reachability',
  'publication',
  'service',
  'mcp',
  'data',
  'keys',
  'disk',
  'start',
  'update',
] as const;
export type Check = (typeof CHECKS)[number];

export interface Finding {
  readonly check: Check;
  readonly level: Level;
  readonly what: string;
  /** How to fix it. */
  readonly hint?: string | undefined;
}

/** Creates the findings of one check. Failures and warnings always have a hint. */
export function findingsOf(check: Check) {
  return {
    pass: (what: string): Finding => ({ check, level: 'PASS', what }),
    info: (what: string, hint?: string): Finding => ({ check, level: 'INFO', what, hint }),
    warn: (what: string, hint: string): Finding => ({ check, level: 'WARN', what, hint }),
    fail: (what: string, hint: string): Finding => ({ check, level: 'FAIL', what, hint }),
  };
}

/** True if nothing failed. */
export function hasNoFailures(findings: readonly Finding[]): boolean {
  return findings.every(({ level }) => level !== 'FAIL');
}
