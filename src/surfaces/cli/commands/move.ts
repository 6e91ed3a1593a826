/** `svc agents export`, `svc agents import`: moves an agent to another machine. */
import { SvcError } from '../../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../../foundation/json.ts';
import { MAX_AGENT_DOCUMENT_BYTES } from '../../../foundation/moving/agent-document.ts';
import { seal } from '../../../foundation/moving/sealed-file.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { readAll } from '../input.ts';
import { openFile, rejectExisting, writeNewFile } from '../new-file.ts';
import type { ParsedOptions } from '../options.ts';
import { writeOnce } from '../output.ts';
import { newPassword, type PasswordOptions } from '../password.ts';
import { shortSize } from '../reach-text.ts';
import { formatFields, safeJson, type WrappedText } from '../text.ts';

type AgentDocument = AnswerOf<'agentBundle'>;
type Imported = AnswerOf<'agentImport'>;

const EXPORT = {
  '-o, --out <file>': 'write to a new file with mode 0600',
  '--password': 'encrypt it with a password from a prompt',
  '--password-file <file>': 'encrypt it with the password in the first line of a file',
} as const;

const IMPORT = {
  '--service-tcp <address>': 'the service that answers its calls here, instead of the exported one',
  '--password-file <file>': 'file with the password of an encrypted export; prompts if omitted',
} as const;

const CLEAR_WARNING =
  'The file contains the operational key unencrypted. Anyone who can read it can act as the agent. Use --password to encrypt it.';
const MOVED_HINT =
  'Now stop the old daemon, or delete the agent there: the file does not include data that arrives later.';

/** Largest file that is read, bytes: a document with whitespace, or an encrypted one. */
const MAX_FILE_BYTES: number = 2 * MAX_AGENT_DOCUMENT_BYTES;

/** Notes about the written file. */
function exportRemarks(sealed: boolean, left: AgentDocument['left_out']): string {
  const { objects, chat_entries: entries, group_copies } = left;
  const groups = group_copies.length;
  const lines = [
    !sealed && CLEAR_WARNING,
    objects > 0 && `${objects} objects are not included. Copy files_root yourself.`,
    entries > 0 && `${entries} old chat entries did not fit.`,
    groups > 0 && `${groups} large groups are not included. The agent fetches them from their members.`,
    MOVED_HINT,
  ];
  return lines.filter(Boolean).join('\n');
}

async function exportAgent(context: CliContext, options: ParsedOptions<'<aid>', typeof EXPORT>) {
  const { aid, out } = options;
  const sealed = options.password === true || options.password_file !== undefined;
  if (sealed && out === undefined && context.io.stdout.isTTY === true)
    throw new SvcError('invalid_request', { message: 'An encrypted file is binary. Choose a file with -o.' });
  if (out !== undefined) rejectExisting(out);
  // Check that the agent exists before prompting for a password.
  const document = await context.withLocalAgentHint(context.client.agentBundle({ aid }));
  const text = Buffer.from(`${safeJson(document, sealed ? 0 : 2)}\n`);
  const content = sealed ? seal('agent', await newPassword(context, options), [text]) : [text];
  const { left_out } = document;
  if (out !== undefined)
    return { aid: document.aid, file: out, size: await writeNewFile(out, content), sealed, left_out };
  for await (const piece of content) await writeOnce(context.io.stdout, piece);
  context.info(exportRemarks(sealed, left_out));
  return undefined;
}

async function readDocument(context: CliContext, file: string, options: PasswordOptions): Promise<unknown> {
  const content = await openFile(context, 'agent', file, options);
  const tooLarge = new SvcError('bad_file', { message: `${file} is too large for an agent.` });
  const document = readJson((await readAll(content, MAX_FILE_BYTES, tooLarge)).toString('utf8'));
  if (document === undefined)
    throw new SvcError('bad_file', { message: `${file} is not an exported agent, or it is damaged.` });
  return document;
}

function textAt(value: unknown, key: string): string | undefined {
  const member = memberOf(value, key);
  return typeof member === 'string' ? member : undefined;
}

async function importAgent(
  context: CliContext,
  options: ParsedOptions<'<file>', typeof IMPORT>,
): Promise<Imported | AnswerOf<'agentRegister'>> {
  const { client } = context;
  const { file, service_tcp: service } = options;
  const document = await readDocument(context, file, options);
  if (isObject(document) && Object.hasOwn(document, 'svcd_agent')) {
    const bundle = { ...document, ...(service === undefined ? {} : { service_tcp: service }) } as AgentDocument;
    return context.progress('Importing', client.agentImport(bundle));
  }
  // Bare credentials as returned by GET /agents/{aid}/export.
  const operational_private_key_hex = textAt(document, 'operational_private_key_hex');
  const delegation_proof_hex = textAt(document, 'delegation_proof_hex');
  if (operational_private_key_hex === undefined || delegation_proof_hex === undefined)
    throw new SvcError('bad_file', { message: `${file} is not an exported agent: its keys are missing.` });
  const service_tcp = service ?? textAt(document, 'service_tcp');
  return client.agentRegister({ operational_private_key_hex, delegation_proof_hex, service_tcp });
}

function importedText(r: Imported): WrappedText {
  return formatFields({
    aid: r.aid,
    'calls go to': r.service_tcp === '' ? 'none: bind a service with "svc inbound bind"' : r.service_tcp,
    services: r.services,
    tunnels: r.tunnels,
    'local addresses': r.origins,
    'pending notes': r.notes,
    'chat friends': r.conversations,
    groups: r.groups,
  });
}

function importRemarks({ ports_taken }: Imported): string {
  return [
    ...ports_taken.map((port) => `The agent has no listener on port ${port}: another program uses it.`),
    'This node now publishes for the agent. If it still runs on another node, that node stops renewing its records.',
  ].join('\n');
}

/** Adds the commands below `svc agents`. */
export function moveCommands(agents: CommandGroup): void {
  agents.run('export <aid>', 'export an agent with its keys and data, to move it to another machine', {
    examples: ['svc agents export laptop -o laptop.agent --password'],
    options: EXPORT,
    run: exportAgent,
    text: ({ file, size, sealed }) => `Wrote ${file}, ${shortSize(size)}${sealed ? ', encrypted' : ''}.`,
    quiet: ({ file }) => file,
    remark: ({ sealed, left_out }) => exportRemarks(sealed, left_out),
  });
  agents.run('import <file>', 'import an exported agent, all or nothing', {
    examples: ['svc agents import laptop.agent --service-tcp 127.0.0.1:8080'],
    options: IMPORT,
    run: importAgent,
    text: (r) => ('groups' in r ? importedText(r) : `${r.aid} is registered here.`),
    quiet: ({ aid }) => aid,
    remark: (r) => 'groups' in r && importRemarks(r),
  });
}
