/** `svc agents export`, `svc agents import`: moves an agent to another machine. */
import { SvcError } from '../../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../../foundation/json.ts';
import { MAX_AGENT_DOCUMENT_BYTES } from '../../../foundation/moving/agent-document.ts';
import { seal } from '../../../foundation/moving/sealed-file.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import type { Laid } from '../laid.ts';
import { openFile, refuseExisting, writeNewFile } from '../new-file.ts';
import { deliver } from '../output.ts';
import { newPassword, type PasswordOptions } from '../password.ts';
import { readAll } from '../standard-input.ts';
import type { Typed } from '../takes.ts';
import { formatFields, safeJson } from '../text.ts';

type AgentDocument = AnswerOf<'agentBundle'>;
type Imported = AnswerOf<'agentImport'>;

const EXPORT = {
  '-o, --out <file>': 'write to a new file of mode 0600',
  '--password': 'seal it with a password, which is asked for',
  '--password-file <file>': 'seal it with the password in the first line of a file',
} as const;

const IMPORT = {
  '--service-tcp <address>': 'the service that answers its calls here, in place of the exported one',
  '--password-file <file>': 'file with the password of a sealed export; it is asked for otherwise',
} as const;

const CLEAR_WARNING =
  'The file holds the operational key in clear: whoever reads it can act as the agent. With --password it is sealed.';
const MOVED_HINT =
  'Now stop the old daemon, or delete the agent there: what comes to it from now on is not in the file.';

/** Largest file that is looked at: a document with blanks, or sealed. */
const MAX_FILE_BYTES: number = 2 * MAX_AGENT_DOCUMENT_BYTES;

/** What is to be known of a file that was written. */
function exportRemarks(sealed: boolean, left: AgentDocument['left_out']): string {
  const { objects, chat_entries: entries, room_copies } = left;
  const rooms = room_copies.length;
  const lines = [
    !sealed && CLEAR_WARNING,
    objects > 0 && `${objects} objects stay here: copy files_root yourself.`,
    entries > 0 && `${entries} old chat entries had no room.`,
    rooms > 0 && `${rooms} large rooms are not copied: they are fetched from their members.`,
    MOVED_HINT,
  ];
  return lines.filter(Boolean).join('\n');
}

async function exportAgent(context: CliContext, options: Typed<'<aid>', typeof EXPORT>) {
  const { aid, out } = options;
  const sealed = options.password === true || options.password_file !== undefined;
  if (sealed && out === undefined && context.io.stdout.isTTY === true)
    throw new SvcError('invalid_request', { message: 'A sealed file is no text: say where to write it with -o.' });
  if (out !== undefined) refuseExisting(out);
  // Before the password is asked for: nobody types one for an agent that is not here.
  const document = await context.withOwn(context.client.agentBundle({ aid }));
  const text = Buffer.from(`${safeJson(document, sealed ? 0 : 2)}\n`);
  const content = sealed ? seal('agent', await newPassword(context, options), [text]) : [text];
  const { left_out } = document;
  if (out !== undefined)
    return { aid: document.aid, file: out, size: await writeNewFile(out, content), sealed, left_out };
  for await (const piece of content) await deliver(context.io.stdout, piece);
  context.note(exportRemarks(sealed, left_out));
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
  options: Typed<'<file>', typeof IMPORT>,
): Promise<Imported | AnswerOf<'agentRegister'>> {
  const { client } = context;
  const { file, service_tcp: service } = options;
  const document = await readDocument(context, file, options);
  if (isObject(document) && Object.hasOwn(document, 'svcd_agent')) {
    const bundle = { ...document, ...(service === undefined ? {} : { service_tcp: service }) } as AgentDocument;
    return context.progress('Importing', client.agentImport(bundle));
  }
  // The bare credentials, as GET /agents/{aid}/export gives them.
  const operational_private_key_hex = textAt(document, 'operational_private_key_hex');
  const delegation_proof_hex = textAt(document, 'delegation_proof_hex');
  if (operational_private_key_hex === undefined || delegation_proof_hex === undefined)
    throw new SvcError('bad_file', { message: `${file} is not an exported agent: it lacks its keys.` });
  const service_tcp = service ?? textAt(document, 'service_tcp');
  return client.agentRegister({ operational_private_key_hex, delegation_proof_hex, service_tcp });
}

function importedText(r: Imported): Laid {
  return formatFields({
    aid: r.aid,
    'calls go to': r.service_tcp === '' ? 'nothing: bind a service with "svc inbound bind"' : r.service_tcp,
    services: r.services,
    tunnels: r.tunnels,
    'local addresses': r.origins,
    'notes waiting': r.notes,
    'chat friends': r.conversations,
    rooms: r.rooms,
  });
}

function importRemarks({ ports_taken }: Imported): string {
  return [
    ...ports_taken.map((port) => `The agent is not served on port ${port}: something else has it here.`),
    'What it publishes goes out from here now; where it still runs elsewhere, it is renewed there no more.',
  ].join('\n');
}

/** Adds the commands below `svc agents`. */
export function moveCommands(agents: CommandGroup): void {
  agents.run('export <aid>', 'write down everything that an agent has, keys included, to move it to another machine', {
    examples: ['svc agents export laptop -o laptop.agent --password'],
    takes: EXPORT,
    run: exportAgent,
    text: ({ file, size, sealed }) => `Written to ${file}, ${size} bytes${sealed ? ', sealed' : ''}.`,
    quiet: ({ file }) => file,
    remark: ({ sealed, left_out }) => exportRemarks(sealed, left_out),
  });
  agents.run('import <file>', 'take in an exported agent, all of it or nothing', {
    examples: ['svc agents import laptop.agent --service-tcp 127.0.0.1:8080'],
    takes: IMPORT,
    run: importAgent,
    text: (r) => ('rooms' in r ? importedText(r) : `${r.aid} is registered here.`),
    quiet: ({ aid }) => aid,
    remark: (r) => 'rooms' in r && importRemarks(r),
  });
}
