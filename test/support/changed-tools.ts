/** Parameters of tools that the contract does not name, and parameters that it requires and svcd does not. */
export const CHANGED_TOOLS: Readonly<
  Record<string, { readonly added: readonly string[]; readonly optional?: readonly string[] }>
> = {
  svc_fetch: { added: ['timeout_s'] },
  svc_events_poll: { added: ['wait_s'] },
  svc_mailbox_list: { added: ['wait_s'] },
  svc_mailbox_send: { added: ['text'], optional: ['msg_type', 'body_base64'] },
  chat_read: { added: ['wait_s'] },
  group_read: { added: ['wait_s'] },
  group_append: { added: ['text'] },
};

/** The parameters of a tool of the contract. */
export function parametersOf({
  name,
  required,
  optional,
}: {
  readonly name: string;
  readonly required: readonly string[];
  readonly optional: readonly string[];
}): { required: string[]; optional: string[] } {
  const { added = [], optional: may = [] } = CHANGED_TOOLS[name] ?? {};
  return {
    required: required.filter((one) => !may.includes(one)).sort(),
    optional: [...optional, ...added, ...may].sort(),
  };
}
