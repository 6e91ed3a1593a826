/** `svc publish`: says on the network that an agent offers a service. */
import type { Command } from 'commander';
import { SvcError } from '../../../foundation/errors.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import { MAX_BRIEF_BYTES } from '../../../foundation/records/types.ts';
import type { Draft } from '../agent-card.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { draftFrom } from '../find-card.ts';
import { confirmed } from '../prompt.ts';
import { counted, formatFields } from '../text.ts';
import { collect, integer } from '../values.ts';

interface PublishOptions {
  readonly from?: string;
  readonly aid?: string;
  readonly name?: string;
  readonly brief?: string;
  readonly url?: string;
  readonly ttl?: number;
  readonly protocol: readonly string[];
  readonly tag: readonly string[];
  readonly yes?: boolean;
}

/** What is published beside the name of the service. */
type Offer = Pick<Draft, 'name' | 'brief' | 'url' | 'protocols' | 'tags'>;

/** What the options say; what they leave out, the card says. */
function offerOf({ name, brief, url, protocol, tag }: PublishOptions, draft: Draft | undefined): Offer {
  const said = {
    ...(name === undefined ? {} : { name }),
    ...(brief === undefined ? {} : { brief }),
    ...(url === undefined ? {} : { url }),
  };
  const { from: _from, remarks: _remarks, ...drafted } = draft ?? { protocols: [], tags: [], from: '', remarks: [] };
  return {
    ...drafted,
    ...said,
    protocols: protocol.length > 0 ? protocol : drafted.protocols,
    tags: tag.length > 0 ? tag : drafted.tags,
  };
}

function draftText(service: string, aid: string, { name, brief, url, protocols, tags }: Offer): string {
  return formatFields([
    ['service', service],
    ['agent', aid],
    ['name', name],
    ['brief', brief],
    ['protocols', protocols.join(', ')],
    ['tags', tags.join(', ')],
    ['url', url],
  ]);
}

/** Shows a draft; what a card says goes out only where somebody has agreed. */
function showDraft(context: CliContext, text: string, { from, remarks }: Draft, agreed: boolean): void {
  context.note([`Draft from ${from}`, text, ...remarks].join('\n'));
  if (!agreed && !context.interactive)
    throw new SvcError('invalid_request', {
      message: 'Nothing was published: say -y to publish what a card says where nobody is there to ask.',
    });
}

async function publish(context: CliContext, service: string, options: PublishOptions): Promise<void> {
  const aid = await context.localAgent(options.aid);
  const draft =
    options.from === undefined ? undefined : await context.progress('Reading the card', draftFrom(options.from));
  const offer = offerOf(options, draft);
  const { name, brief, url, protocols, tags } = offer;
  if (draft !== undefined) showDraft(context, draftText(service, aid, offer), draft, options.yes === true);
  if (options.yes !== true && context.interactive) {
    if (!(await confirmed(context.io, `Publish ${service} of ${aid} for everyone on the network to see?`)))
      throw new SvcError('cancelled', { message: 'Nothing was published.' });
  }
  const work = context.client.serviceRegister({
    aid,
    services: [service],
    protocols: [...protocols],
    tags: [...tags],
    ...(name === undefined ? {} : { name }),
    ...(brief === undefined ? {} : { brief }),
    ...(url === undefined ? {} : { meta: { url } }),
    ...(options.ttl === undefined ? {} : { ttl: options.ttl }),
  });
  const [result, { service_tcp }] = await context.progress(
    'Publishing',
    Promise.all([work, context.client.agentGet({ aid })]),
  );
  context.show(
    { ...result, aid, service, ...offer },
    { text: (r) => `${service} is published, kept by ${counted(r.replicas, 'node')}.`, quiet: (r) => String(r.seq) },
  );
  if (service_tcp === '')
    context.note(`Nobody can call it yet: bind its service with "svc inbound bind --addr host:port --aid ${aid}".`);
}

export function publishCommand(program: Command, contextOf: ContextOf): void {
  program
    .command('publish')
    .argument('<service>', 'a service name such as lang.translate')
    .description('say that an agent offers a service')
    .addHelpText(
      'after',
      examples(
        'svc publish lang.translate --brief "Translates between 40 languages" --protocol http --tag fast',
        'svc publish lang.translate --from http://127.0.0.1:8080',
      ),
    )
    .option('--from <url>', 'draft the rest from the card of a service: its address, or that of the card')
    .option('--aid <aid>', 'the agent; may be left out where there is only one')
    .option('--name <text>', 'display name')
    .option('--brief <text>', `one or two sentences, at most ${sizeText(MAX_BRIEF_BYTES)}`)
    .option('--url <url>', 'where to read more')
    .option('--ttl <seconds>', 'how long the record lives without renewal', integer)
    .option('--protocol <name>', 'a protocol that the service speaks; may be repeated', collect, [])
    .option('--tag <name>', 'a tag; may be repeated', collect, [])
    .option('-y, --yes', 'do not ask')
    .action((service: string, options: PublishOptions, command: Command) =>
      publish(contextOf(command), service, options),
    );
}
