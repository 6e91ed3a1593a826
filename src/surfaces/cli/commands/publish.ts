/** `svc publish`: publishes that an agent offers a service. */
import { sizeText } from '../../../foundation/display-text.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { isObject } from '../../../foundation/json.ts';
import { MAX_BRIEF_BYTES } from '../../../foundation/records/types.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { type CardDraft, draftFromService, missingInterfacesText } from '../find-card.ts';
import { promptYes } from '../input.ts';
import { ACTING_AGENT, integer, type ParsedOptions, repeatable } from '../options.ts';
import { publishResultText } from '../publication.ts';
import { formatFields } from '../text.ts';

const TAKES = {
  '<service>': 'a service name such as lang.translate',
  '--from <url>':
    'draft the other options from the card of a service, and sign that card: a URL, or a file such as ./card.json',
  ...ACTING_AGENT,
  '--name <text>': 'display name',
  '--brief <text>': `one or two sentences, at most ${sizeText(MAX_BRIEF_BYTES)}`,
  '--url <url>': 'URL with more information',
  '--wakes <seconds>': integer('it starts when it is called, usually within this time; default: as in its profile'),
  '--ttl <seconds>': integer('lifetime of the record without renewal'),
  '--protocol <name>': repeatable('a protocol that the service speaks; repeatable'),
  '--tag <name>': repeatable('a tag; repeatable'),
  '-y, --yes': 'do not ask',
} as const;

type Publishing = ParsedOptions<'', typeof TAKES>;

/** The options, completed from the card. */
function offerOf({ name, brief, url, protocol, tag }: Publishing, draft: CardDraft | undefined) {
  return {
    name: name ?? draft?.name,
    brief: brief ?? draft?.brief,
    url: url ?? draft?.url,
    protocols: protocol ?? [...(draft?.protocols ?? [])],
    tags: tag ?? [...(draft?.tags ?? [])],
  };
}

function draftText(agent: string, service: string, { name, brief, url, ...lists }: ReturnType<typeof offerOf>): string {
  const [protocols, tags] = [lists.protocols.join(', '), lists.tags.join(', ')];
  return String(formatFields({ service, agent, name, brief, protocols, tags, url }));
}

/** Shows a draft. The text of a card is published only after the user agreed. */
function showDraft(context: CliContext, text: string, { from, remarks }: CardDraft, agreed: boolean): void {
  context.info([`Draft from ${from}`, text, ...remarks].join('\n'));
  if (!agreed && !context.interactive)
    throw new SvcError('invalid_request', {
      message: 'Nothing was published. To publish the draft without a terminal, pass -y.',
    });
}

/** Signs and stores the card that the draft came from. The published record does not depend on it. */
async function keepCard(context: CliContext, aid: string, card: unknown): Promise<string | undefined> {
  try {
    if (!isObject(card)) return undefined;
    const { object_id, left_out } = await context.client.cardSet({ aid, card });
    if (left_out.length > 0) context.info(missingInterfacesText(left_out));
    return object_id;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    context.info(`The card itself was not stored: ${error.message}`);
    return undefined;
  }
}

async function publish(context: CliContext, options: Publishing) {
  const { service, aid, from, ttl, yes, wakes: wakes_within_s } = options;
  const draft = from === undefined ? undefined : await context.progress('Reading the card', draftFromService(from));
  const offer = offerOf(options, draft);
  if (draft !== undefined) showDraft(context, draftText(aid, service, offer), draft, yes === true);
  const question = `Publish ${service} of ${aid}, visible to everyone on the network?`;
  if (yes !== true && context.interactive && !(await promptYes(context.io, question)))
    throw new SvcError('cancelled', { message: 'Nothing was published.' });
  const { url, ...rest } = offer;
  const meta = url === undefined ? undefined : { url };
  const work = Promise.all([
    context.client.serviceRegister({ aid, services: [service], ...rest, meta, ttl, wakes_within_s }),
    context.client.agentGet({ aid }),
  ]);
  const [published, agent] = await context.progress('Publishing', work);
  const signed = draft === undefined ? undefined : await keepCard(context, aid, draft.card);
  const kept = signed === undefined ? {} : { card: signed };
  return { answer: { ...published, aid, service, ...offer, ...kept }, agent };
}

export function publishCommand(svc: CommandGroup): void {
  svc.run('publish', 'publish that an agent offers a service', {
    examples: [
      'svc publish lang.translate --brief "Translates between 40 languages" --protocol http --tag fast',
      'svc publish lang.translate --from http://127.0.0.1:8080',
    ],
    options: TAKES,
    run: publish,
    json: ({ answer }) => answer,
    text: ({ answer }) => publishResultText(answer.service, answer),
    quiet: ({ answer }) => String(answer.seq),
    remark: ({ answer: { aid }, agent: { service_tcp } }) =>
      service_tcp === '' &&
      `No one can call it yet. Bind its service with "svc inbound bind --addr host:port --as ${aid}".`,
  });
}
