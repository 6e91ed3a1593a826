/** Explains which interfaces are missing in a signed card. */
import type { AnswerOf } from './client.ts';
import { safeLine } from './text.ts';

type OmittedInterfaces = AnswerOf<'cardSet'>['left_out'];

/** One line per missing interface, with the fix for gRPC. Empty if none is missing. */
export function missingInterfacesText(interfaces: OmittedInterfaces): string {
  const lines = interfaces.map(({ protocol_binding: binding, address, service_port }) => {
    const what = binding === null ? 'interface' : `${safeLine(binding)} interface`;
    return `Omitted: its ${what} at ${safeLine(address)}, because the agent is bound to port ${service_port} for that.`;
  });
  if (interfaces.some(({ protocol_binding }) => protocol_binding === 'GRPC'))
    lines.push('Bind both with "svc inbound bind --addr http://host:port,tcp://host:port", then set the card again.');
  return lines.join('\n');
}
