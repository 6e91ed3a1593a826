/** Says which interfaces a signed card lacks and why, so that nobody wonders why callers do not find them. */
import type { AnswerOf } from './client.ts';
import { safeLine } from './text.ts';

type LeftOut = AnswerOf<'cardSet'>['left_out'];

/** A line for each interface, and how to have those of gRPC in the card; empty where none was left out. */
export function leftOutText(interfaces: LeftOut): string {
  const lines = interfaces.map(({ protocol_binding: binding, address, service_port }) => {
    const what = binding === null ? 'interface' : `${safeLine(binding)} interface`;
    return `Left out: its ${what} at ${safeLine(address)}, as the agent is bound to port ${service_port} for that.`;
  });
  if (interfaces.some(({ protocol_binding }) => protocol_binding === 'GRPC'))
    lines.push(
      'With "svc inbound bind --addr http://host:port,tcp://host:port" it is bound to both; then set the card anew.',
    );
  return lines.join('\n');
}
