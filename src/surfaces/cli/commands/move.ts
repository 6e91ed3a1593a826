/** `svc agents export`, `svc agents import`: moves an agent to another machine. */
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import { isObject, memberOf, readJson } from '../../../foundation/json.ts';
import { MAX_AGENT_DOCUMENT_BYTES } from '../../../foundation/moving/agent-document.ts';
import { SEALED_PREFIX, seal, unseal } from '../../../foundation/moving/sealed-file.ts';
import type { CliContext, ContextOf, SvcClient } from '../context.ts';
import { examples } from '../examples.ts';
import { beginningOf, readFilePieces, refuseExisting, writeNewFile } from '../new-file.ts';
import { newPassword, type PasswordOptions, readPassword } from '../password.ts';
import { formatFields, safeJson } from '../text.ts';

type AgentDocument = Awaited<ReturnType<SvcClient['agentBundle']>>;
type Imported = Awaited<ReturnType<SvcClient['agentImport']>>;

interface ExportOptions extends PasswordOptions {
  readonly out?: string;
  readonly password?: boolean;
}

interface ImportOptions extends PasswordOptions {
  readonly serviceTcp?: string;
}

const CLEAR_WARNING =
  'The file holds the operational key in clear: whoever reads it can act as the agent. With --password it is sealed.';
const MOVED_HINT =
  'Now stop the old daemon, or delete the agent there: what comes to it from now on is not in the file.';

/** Largest file that is looked at: a document with blanks, or sealed. */
const MAX_FILE_BYTES: number = 2 * MAX_AGENT_DOCUMENT_BYTES;

function staysBehind({ left_out: left }: AgentDocument): string[] {
  return [
    ...(left.objects === 0 ? [] : [`${left.objects} objects stay here: copy files_root yourself.`]),
    ...(left.chat_entries === 0 ? [] : [`${left.chat_entries} old chat entries had no room.`]),
    ...(left.room_copies.length === 0
      ? []
      : [`${left.room_copies.length} large rooms are not copied: they are fetched from their members.`]),
  ];
}

async function exportAgent(context: CliContext, aid: string, options: ExportOptions): Promise<void> {
  const { out } = options;
  const sealed = options.password === true || options.passwordFile !== undefined;
  if (sealed && out === undefined && context.io.stdout.isTTY === true)
    throw new SvcError('invalid_request', { message: 'A sealed file is no text: say where to write it with -o.' });
  if (out !== undefined) refuseExisting(out);
  // Before the password is asked for: nobody types one for an agent that is not here.
  const document = await context.withOwn(context.client.agentBundle({ aid }));
  const text = Buffer.from(`${safeJson(document, sealed ? 0 : 2)}\n`);
  const content = sealed ? seal('agent', await newPassword(context, options), [text]) : [text];
  if (out === undefined) {
    for await (const piece of content) context.io.stdout.write(piece);
  } else {
    const size = await writeNewFile(out, content);
    context.show(
      { aid: document.aid, file: out, size, sealed, left_out: document.left_out },
      { text: () => `Written to ${out}, ${size} bytes${sealed ? ', sealed' : ''}.`, quiet: () => out },
    );
  }
  if (!sealed) context.note(CLEAR_WARNING);
  for (const remark of staysBehind(document)) context.note(remark);
  context.note(MOVED_HINT);
}

async function readDocument(context: CliContext, file: string, options: PasswordOptions): Promise<unknown> {
  const isSealed = (await beginningOf(file, SEALED_PREFIX.length)) === SEALED_PREFIX;
  const pieces = readFilePieces(file);
  const content = isSealed ? unseal('agent', await readPassword(context, options), pieces) : pieces;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const piece of content) {
    size += piece.length;
    if (size > MAX_FILE_BYTES) throw new SvcError('bad_file', { message: `${file} is too large for an agent.` });
    chunks.push(piece);
  }
  const document = readJson(Buffer.concat(chunks).toString('utf8'));
  if (document === undefined)
    throw new SvcError('bad_file', { message: `${file} is not an exported agent, or it is damaged.` });
  return document;
}

function textAt(value: unknown, key: string): string | undefined {
  const member = memberOf(value, key);
  return typeof member === 'string' ? member : undefined;
}

async function importAgent(context: CliContext, file: string, options: ImportOptions): Promise<void> {
  const document = await readDocument(context, file, options);
  const service = options.serviceTcp;
  if (isObject(document) && Object.hasOwn(document, 'svcd_agent')) {
    const bundle = { ...document, ...(service === undefined ? {} : { service_tcp: service }) } as AgentDocument;
    const imported = await context.progress('Importing', context.client.agentImport(bundle));
    return showImported(context, imported);
  }
  // The bare credentials, as GET /agents/{aid}/export gives them.
  const operational = textAt(document, 'operational_private_key_hex');
  const delegation = textAt(document, 'delegation_proof_hex');
  const bound = service ?? textAt(document, 'service_tcp');
  if (operational === undefined || delegation === undefined)
    throw new SvcError('bad_file', { message: `${file} is not an exported agent: it lacks its keys.` });
  const result = await context.client.agentRegister({
    operational_private_key_hex: operational,
    delegation_proof_hex: delegation,
    ...(bound === undefined ? {} : { service_tcp: bound }),
  });
  context.show(result, { text: (r) => `${r.aid} is registered here.`, quiet: (r) => r.aid });
}

function showImported(context: CliContext, imported: Imported): void {
  context.show(imported, {
    text: (r) =>
      formatFields([
        ['aid', r.aid],
        ['calls go to', r.service_tcp === '' ? 'nothing: bind a service with "svc inbound bind"' : r.service_tcp],
        ['services', r.services],
        ['tunnels', r.tunnels],
        ['notes waiting', r.notes],
        ['chat friends', r.conversations],
        ['rooms', r.rooms],
      ]),
    quiet: (r) => r.aid,
  });
  for (const port of imported.ports_taken)
    context.note(`The tunnel on port ${port} does not listen: something else has the port here.`);
  context.note('What it publishes goes out from here now; where it still runs elsewhere, it is renewed there no more.');
}

/** @param agents the command `svc agents` */
export function moveCommands(agents: Command, contextOf: ContextOf): void {
  agents
    .command('export')
    .argument('<aid>')
    .option('-o, --out <file>', 'write to a new file of mode 0600')
    .option('--password', 'seal it with a password, which is asked for')
    .option('--password-file <file>', 'seal it with the password in the first line of a file')
    .description('write down everything that an agent has, keys included, to move it to another machine')
    .addHelpText('after', examples('svc agents export laptop -o laptop.agent --password'))
    .action((aid: string, options: ExportOptions, command: Command) => exportAgent(contextOf(command), aid, options));
  agents
    .command('import')
    .argument('<file>')
    .option('--service-tcp <address>', 'the service that answers its calls here, in place of the exported one')
    .option('--password-file <file>', 'file with the password of a sealed export; it is asked for otherwise')
    .description('take in an exported agent, all of it or nothing')
    .addHelpText('after', examples('svc agents import laptop.agent --service-tcp 127.0.0.1:8080'))
    .action((file: string, options: ImportOptions, command: Command) => importAgent(contextOf(command), file, options));
}
