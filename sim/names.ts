/** Names of the parts of a world, for its options. */

/** Kinds of faults. */
export const FAULT_KINDS = [
  'loss',
  'partition',
  'one-way partition',
  'flapping partition',
  'sleep',
  'crash',
  'restart',
  'nat restart',
  'address change',
  'clock jump',
  'wrong clock',
  'power cut',
  'blackout',
  'full disk',
  'failing writes',
  'failing reads',
  'failing flushes',
  'slow network',
] as const;

/** Kinds of faults that only `--faults` names, so that a seed without this option keeps its faults. */
export const MORE_FAULT_KINDS = ['no descriptors', 'lost address'] as const;
export const ALL_FAULT_KINDS: readonly FaultKind[] = [...FAULT_KINDS, ...MORE_FAULT_KINDS];
export type FaultKind = (typeof FAULT_KINDS | typeof MORE_FAULT_KINDS)[number];

export const USER_NAMES = [
  'keys',
  'calls',
  'notes',
  'chats',
  'files',
  'records',
  'groups',
  'lives',
  'tunnels',
  'streams',
  'disasters',
  'trials',
] as const;

/** Trials take hours and need no faults. */
export const DEFAULT_USERS: readonly string[] = USER_NAMES.filter((name) => name !== 'trials');

export const TRIAL_NAMES = [
  'offline note',
  'failed flush',
  'unflushed text',
  'wrong time',
  'first node',
  'returned',
  'moved 1 s ago',
  'moved 3 s ago',
  'moved 10 s ago',
  'moved awake 3 s ago',
  'moved awake 15 s ago',
  'secret',
  'restless',
  'denied',
  'kept note',
  'entries ahead',
  'false invitation',
  'clock behind',
  'clock ahead',
  'full disk',
  'full disks elsewhere',
  'denied late',
  'dead path',
  'halves',
  'first node moved',
  'short visit',
  'late helper',
] as const;
export type TrialName = (typeof TRIAL_NAMES)[number];
