/** The part of the walk for hooks. */
import { operations as d } from '../../src/operations/index.ts';
import { ID, Ok, SEQ, type Step, type WalkWorld } from './command-step.ts';
import { eventually } from './eventually.ts';

export async function hookCommands(step: Step, { here, there }: WalkWorld, aid: string, peer: string): Promise<void> {
  await step(here, ['on', 'note', '--as', aid, '--from', peer, '--', 'sh', '-c', 'echo said'], {
    schema: d.hookAdd.output,
    text: /^hook: +\w+\non: +note\n/,
    quiet: ID,
  });
  const { hooks } = await here.call<{ hooks: { id: string }[] }>('GET', '/hooks');
  const { id } = hooks.at(-1) ?? { id: '' };
  const table = { text: /^ID +ON +AGENT/, quiet: /^[\w\n]+$/ };
  await step(here, ['hooks', 'list'], { schema: d.hookList.output, ...table });
  await step(here, ['hooks', 'pause', id], { schema: d.hookPatch.output, text: /^Paused /, quiet: ID });
  await there.call('POST', `/agents/${peer}/mailbox/send`, { recipient: aid, msg_type: 3, body_base64: '' });
  await eventually('the note waits', async () => (await deliveriesOf('waiting')).length === 1);
  await step(here, ['hooks', 'resume', id], { schema: d.hookPatch.output, text: /^Resumed /, quiet: ID });
  const [one] = await eventually('the program has run', async () => {
    const done = await deliveriesOf('done');
    return done.length === 1 && done;
  });
  await step(here, ['hooks', 'deliveries', id], {
    schema: d.hookDeliveries.output,
    text: /^DELIVERY +FROM[\s\S]* done +1 /,
    quiet: SEQ,
  });
  const delivery = String(one?.id);
  await step(here, ['hooks', 'delivery', id, delivery], {
    schema: d.hookDelivery.output,
    text: /exit code 0\s+said$/,
    quiet: /^said\n?$/,
  });
  await step(here, ['hooks', 'drop', id, delivery], { schema: Ok, text: /^Deleted delivery \d+\.$/, quiet: SEQ });
  await step(here, ['hooks', 'rm', id], { schema: Ok, text: /^Removed /, quiet: ID });

  async function deliveriesOf(state: string): Promise<{ id: number }[]> {
    const path = `/hooks/${id}/deliveries?state=${state}`;
    return (await here.call<{ deliveries: { id: number }[] }>('GET', path)).deliveries;
  }
}
