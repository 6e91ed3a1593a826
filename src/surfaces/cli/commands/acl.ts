/** `svc agents acl`: who may call an agent of this daemon. */
import { Argument, type Command } from 'commander';
import { accessTable, entryView } from '../access-text.ts';
import { type AllowOptions, addAllowOptions, allowInput } from '../allow-options.ts';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';

/** Adds the commands below `svc agents`. */
export function aclCommands(agents: Command, contextOf: ContextOf): void {
  const acl = agents
    .command('acl')
    .description('who may call an agent, tunnel to it and read its objects')
    .addHelpText(
      'after',
      examples(
        'svc agents acl default aid1… deny',
        'svc agents acl allow aid1… --aid bob --expires 7d',
        'svc agents acl allow aid1… --secret   # asks for it',
      ),
    );
  acl
    .command('show')
    .argument('<agent>')
    .description('show the access list; secrets are never shown')
    .addHelpText('after', examples('svc agents acl show aid1…'))
    .action(async (aid: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.aclGet({ aid }), {
        text: (a) =>
          [
            a.default === 'public' ? 'Everyone who is not denied may call.' : 'Only who is allowed may call.',
            accessTable(a),
          ]
            .filter((line) => line !== '')
            .join('\n'),
        quiet: (a) => a.default,
      });
    });
  acl
    .command('default')
    .argument('<agent>')
    .addArgument(new Argument('<policy>').choices(['public', 'deny']))
    .description('say who may call that no entry names: everyone or nobody')
    .addHelpText('after', examples('svc agents acl default aid1… deny'))
    .action(async (aid: string, policy: 'public' | 'deny', _options, command: Command) => {
      const context = contextOf(command);
      await context.client.aclPatch({ aid, default: policy });
      context.show({ ok: true, default: policy }, { text: () => `Others: ${policy}.`, quiet: () => policy });
    });
  addAllowOptions(
    acl
      .command('allow')
      .argument('<agent>')
      .option('--aid <aid>', 'the AID that is let in')
      .description('let an AID in, or who presents a secret')
      .addHelpText(
        'after',
        examples(
          'svc agents acl allow aid1… --aid bob --expires 7d',
          'svc agents acl allow aid1… --secret   # asks for it',
          'svc agents acl allow aid1… --generate --label "for the build server"',
        ),
      ),
  ).action(async (aid: string, options: AllowOptions & { aid?: string }, command: Command) => {
    const context = contextOf(command);
    const input = await allowInput(context, options.aid, options);
    const added = context.client.aclAllow({
      aid,
      ...input,
      ...(options.aid === undefined ? {} : { body_aid: options.aid }),
    });
    context.show(await added, entryView);
  });
  acl
    .command('deny')
    .argument('<agent>')
    .argument('<aid>', 'who is refused, whatever else would let it in')
    .description('refuse an AID; its open connections are cut')
    .addHelpText('after', examples('svc agents acl deny aid1… aid1…'))
    .action(async (aid: string, peer: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.aclDeny({ aid, body_aid: peer }), entryView);
    });
  acl
    .command('del')
    .argument('<agent>')
    .addArgument(new Argument('<list>').choices(['allow', 'deny']))
    .argument('<id>', 'of the entry, as "show" lists it')
    .description('take an entry off a list')
    .addHelpText('after', examples('svc agents acl del aid1… allow 7f3a…'))
    .action(async (aid: string, list: 'allow' | 'deny', id: string, _options, command: Command) => {
      const context = contextOf(command);
      const method = list === 'allow' ? 'aclAllowDelete' : 'aclDenyDelete';
      context.show(await context.client[method]({ aid, id }), { text: () => 'ok', quiet: () => id });
    });
}
