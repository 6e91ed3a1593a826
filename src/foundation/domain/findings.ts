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

/** Names of the sentences that a daemon says about itself. Translations use them. */
export const FINDING_CODES = [
  'svcd_version',
  'database_rolled_back',
  'api_is_remote',
  'settings_pending',
  'settings_overridden',
  'check_failed',
  'network_ready',
  'network_used',
  'no_node_known',
  'network_joining',
  'few_nodes',
  'contact_unresolved',
  'contact_ipv6',
  'contact_silent',
  'contact_other_key',
  'quic_works',
  'quic_blocked',
  'path_mtu',
  'exit_connecting',
  'exit_failed',
  'exit_off',
  'listen_address_lost',
  'exit_flows',
  'exit_tls',
  'exit_proxy',
  'exit_inspected',
  'tls_port_in_use',
  'tls_port_not_permitted',
  'tls_port_unusable',
  'no_address',
  'loopback_addresses',
  'local_addresses',
  'reached_by_helpers',
  'reachability_unknown',
  'reachable',
  'double_nat',
  'no_helper',
  'clock_unknown',
  'clock_behind',
  'clock_ahead',
  'clock_correct',
  'delegation_expired',
  'delegation_expires',
  'cannot_publish_yet',
  'never_published',
  'record_expired',
  'runs_elsewhere',
  'not_found',
  'few_replicas',
  'published',
  'no_agents',
  'agents_not_checked',
  'no_service',
  'service_answers',
  'service_silent',
  'mcp_works',
  'mcp_invalid',
  'mcp_silent',
  'data_writable',
  'data_not_writable',
  'data_missing',
  'data_unreadable',
  'disk_free',
  'disk_low',
  'disk_full',
  'keys_private',
  'key_exposed',
  'keys_exposed',
  'system_service',
  'started_by_hand',
  'update_rolled_back',
  'update_check_failed',
  'update_available',
] as const;
export type FindingCode = (typeof FINDING_CODES)[number];

/** The name of a sentence and the values in it. A value whose name ends in `_at` is a time (RFC 3339). */
export interface FindingName {
  readonly code?: FindingCode | undefined;
  readonly values?: Readonly<Record<string, string | number>> | undefined;
}

export interface Finding extends FindingName {
  readonly check: Check;
  readonly level: Level;
  readonly what: string;
  /** How to fix it. */
  readonly hint?: string | undefined;
}

/** Creates the findings of one check. Failures and warnings always have a hint. */
export function findingsOf(check: Check) {
  return {
    pass: (what: string, name?: FindingName): Finding => ({ check, level: 'PASS', what, ...name }),
    info: (what: string, hint?: string, name?: FindingName): Finding => ({ check, level: 'INFO', what, hint, ...name }),
    warn: (what: string, hint: string, name?: FindingName): Finding => ({ check, level: 'WARN', what, hint, ...name }),
    fail: (what: string, hint: string, name?: FindingName): Finding => ({ check, level: 'FAIL', what, hint, ...name }),
  };
}

/** True if nothing failed. */
export function hasNoFailures(findings: readonly Finding[]): boolean {
  return findings.every(({ level }) => level !== 'FAIL');
}
