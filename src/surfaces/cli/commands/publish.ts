/** `svc publish`: says on the network that an agent offers a service. */
import { SvcError } from '../../../foundation/errors.ts';
import { isObject } from '../../../foundation/json.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import { MAX_BRIEF_BYTES } from '../../../foundation/records/types.ts';
import type { CardDraft } from '../agent-card.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { draftFrom } from '../find-card.ts';
import { leftOutText } from '../left-out.ts';
import { confirmed } from '../prompt.ts';
import { answerText } from '../publication.ts';
import { ACTING, integer, repeated, type Typed } from '../takes.ts';
import { formatFields } from '../text.ts';

const TAKES = {
  '<service>': 'a service name such as lang.translate',
  '--from <url>':
    'draft the rest from the card of a service, and sign that: its address, or a file such as ./card.json',
  ...ACTING,
  '--name <text>': 'display name',
  '--brief <text>': `one or two sentences, at most ${sizeText(MAX_BRIEF_BYTES)}`,
  '--url <url>': 'where to read more',
  '--ttl <seconds>': integer('how long the record lives without renewal'),
  '--protocol <name>': repeated('a protocol that the service speaks; may be repeated'),
  '--tag <name>': repeated('a tag; may be repeated'),
  '-y, --yes': 'do not ask',
} as const;

type Publishing = Typed<'', typeof TAKES>;

/** What the options say; what they leave out, the card says. */
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

/** Shows a draft; what a card says goes out only where somebody has agreed. */
function showDraft(context: CliContext, text: string, { from, remarks }: CardDraft, agreed: boolean): void {
  context.note([`Draft from ${from}`, text, ...remarks].join('\n'));
  if (!agreed && !context.interactive)
    throw new SvcError('invalid_request', {
      message: 'Nothing was published: say -y to publish what a card says where nobody is there to ask.',
    });
}

/** Has the card that a draft was made from signed and kept whole; what is published stands without it. */
async function keepCard(context: CliContext, aid: string, card: unknown): Promise<string | undefined> {
  try {
    if (!isObject(card)) return undefined;
    const { object_id, left_out } = await context.client.cardSet({ aid, card });
    if (left_out.length > 0) context.note(leftOutText(left_out));
    return object_id;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    context.note(`The card itself is not kept: ${error.message}`);
    return undefined;
  }
}

async function publish(context: CliContext, options: Publishing) {
  const { service, aid, from, ttl, yes } = options;
  const draft = from === undefined ? undefined : await context.progress('Reading the card', draftFrom(from));
  const offer = offerOf(options, draft);
  if (draft !== undefined) showDraft(context, draftText(aid, service, offer), draft, yes === true);
  const question = `Publish ${service} of ${aid} for everyone on the network to see?`;
  if (yes !== true && context.interactive && !(await confirmed(context.io, question)))
    throw new SvcError('cancelled', { message: 'Nothing was published.' });
  const { url, ...rest } = offer;
  const meta = url === undefined ? undefined : { url };
  const work = Promise.all([
    context.client.serviceRegister({ aid, services: [service], ...rest, meta, ttl }),
    context.client.agentGet({ aid }),
  ]);
  const [published, agent] = await context.progress('Publishing', work);
  const signed = draft === undefined ? undefined : await keepCard(context, aid, draft.card);
  const kept = signed === undefined ? {} : { card: signed };
  return { answer: { ...published, aid, service, ...offer, ...kept }, agent };
}

export function publishCommand(svc: CommandGroup): void {
  svc.run('publish', 'say that an agent offers a service', {
    examples: [
      'svc publish lang.translate --brief "Translates between 40 languages" --protocol http --tag fast',
      'svc publish lang.translate --from http://127.0.0.1:8080',
    ],
    takes: TAKES,
    run: publish,
    json: ({ answer }) => answer,
    text: ({ answer }) => answerText(answer.service, answer),
    quiet: ({ answer }) => String(answer.seq),
    remark: ({ answer: { aid }, agent: { service_tcp } }) =>
      service_tcp === '' &&
      `Nobody can call it yet: bind its service with "svc inbound bind --addr host:port --aid ${aid}".`,
  });
}
