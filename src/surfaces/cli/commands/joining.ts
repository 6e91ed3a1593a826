/** `svc invite`, `svc join`, `svc contacts`: join a network. */

import { HTTPS_PORT } from '../../../foundation/address.ts';
import { callsItself } from '../../../foundation/called-name.ts';
import { pluralize } from '../../../foundation/display-text.ts';
import type { InvitationReach, MeetingState } from '../../../foundation/domain/joining.ts';
import { SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { namedAgent, nextPageHint, PAGE_OPTIONS } from '../options.ts';
import { commandWord, formatTable } from '../text.ts';

/** The reach of an invitation, with advice if it is limited. */
const REACH: Readonly<Record<InvitationReach, string>> = {
  anywhere: 'Anyone can use it: this node is reachable from the Internet.',
  helped: 'Anyone can use it: it names other nodes that are reachable.',
  unproven:
    'No node has reached this node from outside yet. If others cannot join, open the UDP ports of listen_addr and quic_listen_addr.',
  lan: 'Only machines in your own network can use it: this node knows no public address. Open the UDP ports of listen_addr and quic_listen_addr in your router and set fallback_host to its public address, or run svcd on a machine with a public address and invite from there.',
  machine: 'Only this machine can use it, because this node listens on a loopback address. Change listen_addr.',
};

const STATES: Readonly<Record<MeetingState, string>> = {
  untried: 'not tried yet',
  unresolved: 'its name does not resolve',
  ipv6: 'has no IPv4 address',
  silent: 'no response',
  other_key: 'another node responds there',
  met: 'met',
};

function networkText(network: string): string {
  return network === '' ? 'the network' : `the network "${network}"`;
}

/** Whether networks that allow only HTTPS can use an invitation that names public addresses of this node. */
function httpsRemark(reach: InvitationReach, ports: readonly number[]): string[] {
  if (reach !== 'anywhere' && reach !== 'unproven') return [];
  return ports.includes(HTTPS_PORT)
    ? [`Networks that allow only HTTPS need TCP port ${HTTPS_PORT}: open it in your firewall too.`]
    : [
        `Networks that allow only HTTPS cannot use it: this node does not listen on TCP port ${HTTPS_PORT} (tls_listen). "svc doctor" shows problems with this port.`,
      ];
}

export function joiningCommands(svc: CommandGroup): void {
  svc.run('invite', 'print an invitation for another machine', {
    examples: [
      'svc invite',
      'svc invite --public',
      "svc join 'svc://aid1…/join/…'   # on the other machine",
      'svc invite --as home   # also offers this agent as a contact',
    ],
    options: {
      '--public': 'also permit one agent there to hold public names at this entry',
      '--aid <aid>': namedAgent('an agent to offer as a contact'),
    },
    run: async ({ client }, { public: isPublic, aid: agent }): Promise<AnswerOf<'invite'>> => {
      if (isPublic !== true) return client.invite(agent === undefined ? {} : { agent });
      if (agent === undefined) return client.entryInvite();
      throw new SvcError('invalid_request', { message: 'Choose --as or --public.' });
    },
    text: ({ invitation }) => invitation,
    quiet: ({ invitation }) => invitation,
    remark: ({ reach, contacts, network, tls_ports, name }) =>
      [
        `On the other machine, run: svc join '<this line>'`,
        REACH[reach],
        ...httpsRemark(reach, tls_ports),
        `The line reveals the key of this node, ${name === '' ? '' : `its name "${name}" (svc config set name), `}${network === '' ? '' : `the network name "${network}", `}and these addresses: ${contacts.map((contact) => contact.split('@').at(-1)).join(', ')}.`,
      ].join('\n'),
  });
  const join = 'join another machine\'s network with the invitation from "svc invite", or with its address';
  svc.call('join', 'join <to>', join, {
    examples: ["svc join 'svc://aid1…/join/…'", 'svc join node.example.org', 'svc join aid1…@203.0.113.7:4121'],
    progress: 'Joining',
    text: ({ network, by, dht_peers, network_ready, name }) =>
      network_ready
        ? `${name === undefined ? `This node joined ${networkText(network)}` : `You joined the network of ${name}`} through ${by}: ${pluralize(dht_peers, 'peer')}.`
        : `${by} responds and is stored as a contact. Joining ${networkText(network)} continues; see "svc status".`,
    quiet: 'by',
    remark: ({ agent }) =>
      agent !== undefined &&
      `The invitation offers an agent${agent.name === '' ? '' : ` that ${callsItself(agent.name)}`}. Save it: svc alias add ${commandWord(agent.name || 'friend')} ${agent.aid}`,
  });
  const contacts = svc.group(
    'contacts',
    'list the nodes through which this node joins its network',
    ['svc contacts', 'svc contacts rm node.example.org:4121'],
    {
      options: PAGE_OPTIONS,
      run: ({ client }, page): Promise<AnswerOf<'contacts'>> => client.contacts(page),
      remark: (page) => nextPageHint(page),
      watch: true,
      text: (answer) =>
        formatTable(
          ['CONTACT', 'NAME', 'FROM', 'LAST RESULT'],
          answer.contacts.map(({ contact, joined, state, name }) => [
            contact,
            name === undefined ? '' : callsItself(name),
            joined ? 'svc join' : 'bootstrap',
            STATES[state],
          ]),
          'No contacts. Ask the owner of a node for the output of "svc invite", then run "svc join" with it.',
        ),
      quiet: (answer) => answer.contacts.map(({ contact }) => contact).join('\n'),
    },
  );
  contacts.call('contactForget', 'rm <contact>', 'delete a contact that "svc join" added', {
    text: 'Deleted the contact.',
  });
}
