/** Invitations to this network, and joining other networks. */
import { Joining } from '../../capabilities/joining/joining.ts';
import type { Foundation } from '../foundation.ts';
import type { Network } from '../network.ts';

export function buildJoining({ clock, config, node }: Foundation, n: Network) {
  const { records, joined, ownAddresses, portMapper, reach } = n;
  const joining = new Joining(
    { nodeAid: node.aid, network: config.network },
    {
      clock,
      records,
      joined,
      facts: () => ({
        known: ownAddresses.known(),
        mapped: portMapper
          .view()
          .ports.filter(({ internalPort }) => internalPort === records.address.port)
          .map(({ external }) => external),
      }),
      helpers: () => reach.helpers.inRecordNetwork,
    },
  );
  return { joining };
}
