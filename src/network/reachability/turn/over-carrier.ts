/** A connection by a TURN server of ours, which is given back with it. */
import { detach } from '../../../foundation/detached.ts';
import type { Connection } from '../../transport/types.ts';
import type { CarrierOptions, TurnCarrier } from './carrier.ts';
import type { TurnUse } from './turn-servers.ts';

/**
 * Opens a way for the engine to dial over, and gives it back where the connection ends or none comes about.
 * @throws SvcError as `TurnServers.open`, and whatever `dial` fails with
 */
export async function overCarrier(
  turn: TurnUse,
  options: Omit<CarrierOptions, 'enginePort'>,
  dial: (carrier: TurnCarrier) => Promise<Connection>,
): Promise<Connection> {
  const carrier = await turn.open({ ...options, enginePort: null });
  try {
    const connection = await dial(carrier);
    detach(connection.closed.then(() => turn.close(carrier)));
    // Nothing will come any more, and who waits on it dials anew.
    detach(carrier.lost.then(() => connection.close()));
    return connection;
  } catch (error) {
    turn.close(carrier);
    throw error;
  }
}
