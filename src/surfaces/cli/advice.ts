/** How errors are told to people: what was wrong in the words of what they typed, and what to do next. */
import { type ErrorCode, noSuchAgent, type SvcError } from '../../foundation/errors.ts';

/** What to do next, where the message of an error does not say it. */
const NEXT: Partial<Record<ErrorCode, string>> = {
  unauthorized: 'Set SVC_TOKEN to the api_token of the daemon, or give it with --token.',
  not_friends: 'Ask first: svc chat request <aid>',
  wrong_state: 'How you stand to others: svc chat contacts',
  self: 'Name the AID of somebody else; yours are listed by: svc agents',
  resolve_failed: 'Look what is known of it: svc netcheck <aid>',
  connect_failed: 'See what stands between: svc netcheck <aid>',
  inbound_unreachable: 'Its owner can see why: svc agents probe <aid>',
  relay_required: 'Leave --no-relay out, or see why there is no direct way: svc netcheck <aid>',
  port_in_use: 'Leave --local-port out, and the system chooses one.',
  files_root_required: 'Switch them on: svc config set files_root ""',
  not_member: 'Your groups and invitations: svc group list, svc group invitations',
  agent_exists: 'See it: svc agents',
  quota_exceeded: 'See what is there: svc object list, svc group list',
  stale_sequence: 'To have it here all the same: svc agents publish <aid>',
  key_locked: 'See what the daemon needs: svc doctor',
  store_corrupt: 'See what is wrong: svc doctor',
  internal: 'See what is wrong: svc doctor',
};

/** Words of schemas, and what they mean to whoever typed the value. */
const SCHEMA_WORDS: readonly (readonly [RegExp, (...found: string[]) => string])[] = [
  [/^must be >= (\S+)$/, (least) => `is ${least} at least`],
  [/^must be <= (\S+)$/, (most) => `is ${most} at most`],
  [/^must be > (\S+)$/, (bound) => `is more than ${bound}`],
  [/^must be < (\S+)$/, (bound) => `is less than ${bound}`],
  [/^must not have more than (\d+) items?$/, (most) => `may be given ${most} times at most`],
  [/^must not have fewer than (\d+) items?$/, (least) => `is needed ${least} times at least`],
  [/^must not have more than (\d+) characters?$/, (most) => `takes ${most} characters at most`],
  [/^must not have fewer than (\d+) characters?$/, (least) => `takes ${least} characters at least`],
  [/^must match pattern .*$/s, () => 'is not written as it has to be: its help says how'],
  [/^must match format "?date-time"?$/, () => 'is a time such as 2030-01-31T12:00:00Z'],
  [/^must match .*$/s, () => 'is not what belongs there: its help says what'],
  [/^must be equal to .*$/s, () => 'is not one of the values that it takes: its help lists them'],
  [/^must be (\w+)$/, (type) => `has to be a ${type}`],
];

/** Members of requests whose options have other names. */
const TYPED_AS: Readonly<Record<string, string>> = {
  idle_timeout_sec: '--idle-timeout',
  skills: '--skill',
  protocols: '--protocol',
  tags: '--tag',
  modalities: '--modality',
  services: 'the service',
  after_seq: '--after',
  since_ts: '--since',
  until_ts: '--until',
  kind: '--kind',
  title: 'the title',
  text: 'the text',
  body: 'the text',
};

/** `--local-port` of `/local_port`. */
function typedName(path: string): string {
  const [, member = ''] = path.split('/');
  return TYPED_AS[member] ?? `--${member.replaceAll('_', '-')}`;
}

/** Members of a request that options of the same name set. */
const MEMBERS = /\b(?:local_aid|access_token|local_port)\b/g;

/** What was wrong, in the words of what was typed: a member of the request that a command makes says nothing to a person. */
export function inPlainWords({ message, details }: SvcError): string {
  const [path, problem] = [details?.['path'], details?.['problem']];
  if (typeof path === 'string' && path !== '' && typeof problem === 'string')
    for (const [words, meaning] of SCHEMA_WORDS) {
      const found = words.exec(problem);
      if (found !== null) return `${typedName(path)} ${meaning(...found.slice(1))}.`;
    }
  return message.replace(/^request: /, '').replaceAll(MEMBERS, (member) => `--${member.replace('_', '-')}`);
}

/** What to do next; nothing where the message says it. */
export function whatNext(error: SvcError): string | undefined {
  if (error.message === noSuchAgent('').message) return 'Those that are: svc agents';
  return /\bsvcd? \w|"svcd"|--\w/.test(inPlainWords(error)) ? undefined : NEXT[error.code];
}
