/** Error messages for people, in terms of the command line, with the next step. */
import { type ErrorCode, noSuchAgent, type SvcError } from '../../foundation/errors.ts';

/** The next step for errors whose message does not contain it. */
const NEXT: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'Set SVC_TOKEN to the api_token of the daemon, or pass --token.',
  not_friends: 'To send one: svc chat request <aid>',
  wrong_state: 'List your conversations: svc chat contacts',
  self: 'Name another agent. Your own agents: svc agents',
  access_pending: 'To wait for the decision: repeat the command with --wait 60',
  resolve_failed: 'See what is known about it: svc netcheck <aid>',
  connect_failed: 'See what blocks the connection: svc netcheck <aid>',
  inbound_unreachable: 'Its owner can find out why: svc agents probe <aid>',
  relay_required: 'Omit --no-relay, or see why there is no direct path: svc netcheck <aid>',
  port_in_use: 'Omit --local-port to let the system choose a port.',
  files_root_required: 'Turn objects on: svc config set files_root ""',
  not_member: 'Your groups and invitations: svc group list, svc group invitations',
  agent_exists: 'Show it: svc agents',
  quota_exceeded: 'See what is stored: svc object list, svc group list',
  stale_sequence: 'To run it here anyway: svc agents publish <aid>',
  key_locked: 'See what the daemon needs: svc doctor',
  store_corrupt: 'Find the cause: svc doctor',
  internal: 'Find the cause: svc doctor',
};

/** Schema problems in the words of the command line. */
const SCHEMA_WORDS: readonly (readonly [RegExp, (...found: string[]) => string])[] = [
  [/^must be >= (\S+)$/, (least) => `must be at least ${least}`],
  [/^must be <= (\S+)$/, (most) => `must be at most ${most}`],
  [/^must be > (\S+)$/, (bound) => `must be more than ${bound}`],
  [/^must be < (\S+)$/, (bound) => `must be less than ${bound}`],
  [/^must not have more than (\d+) items?$/, (most) => `may be given at most ${most} times`],
  [/^must not have fewer than (\d+) items?$/, (least) => `must be given at least ${least} times`],
  [/^must not have more than (\d+) characters?$/, (most) => `must have at most ${most} characters`],
  [/^must not have fewer than (\d+) characters?$/, (least) => `must have at least ${least} characters`],
  [/^must match pattern .*$/s, () => 'has the wrong format; see its help'],
  [/^must match format "?date-time"?$/, () => 'must be a time such as 2030-01-31T12:00:00Z'],
  [/^must match .*$/s, () => 'is not valid; see its help'],
  [/^must be equal to .*$/s, () => 'must be one of the values in its help'],
  [/^must be (\w+)$/, (type) => `must be a ${type}`],
];

/** Request members whose options have other names. */
const TYPED_AS: Readonly<Record<string, string>> = {
  local_aid: '--as',
  hint_aid: '--from',
  expires_at: 'the expiry',
  scanned_to: 'the entry',
  skills: '--skill',
  protocols: '--protocol',
  tags: '--tag',
  modalities: '--modality',
  services: 'the service',
  title: 'the title',
  text: 'the text',
  body: 'the text',
};

/** `--local-port` for `/local_port`, `--wait` for `/wait_s`. */
function typedName(path: string): string {
  const [member = ''] = path.replace(/^\//, '').split('/');
  return TYPED_AS[member] ?? `--${member.replace(/_(?:aid|id|ms|s|sec|seq|ts)$/, '').replaceAll('_', '-')}`;
}

/** Request members that an option of the same name sets. */
const MEMBERS = /\b(?:local_aid|access_token|local_port)\b/g;

/** The message in terms of the command line. A person does not know the members of the request that a command builds. */
export function explainError({ message, details }: SvcError): string {
  const [path, problem] = [details?.['path'], details?.['problem']];
  if (typeof path === 'string' && path !== '' && typeof problem === 'string')
    for (const [words, meaning] of SCHEMA_WORDS) {
      const found = words.exec(problem);
      if (found !== null) return `${typedName(path)} ${meaning(...found.slice(1))}.`;
    }
  return message.replace(/^request: /, '').replaceAll(MEMBERS, typedName);
}

/**
 * The next step. Undefined if the message contains it.
 * @param args the typed words
 */
export function nextStepHint(error: SvcError, args: readonly string[] = []): string | undefined {
  if (error.code === 'access_denied' && args.some((word) => word === '--note' || word.startsWith('--note=')))
    return args.some((word) => /^--wait(?:=|$)/.test(word))
      ? 'The note was not delivered, unless its owner refused you just now.'
      : 'The note was not delivered: the agent denies this caller without asking its owner.';
  if (error.code === 'local_aid_required' && !error.message.includes('svc use'))
    return 'Or select one for all commands: svc use <agent>';
  if (error.message === noSuchAgent('').message) return 'List your agents: svc agents';
  return /\bsvcd? \w|"svcd"|--\w/.test(explainError(error)) ? undefined : NEXT[error.code];
}
