// No agent runtime: the least that a Node process can do, with global fetch, lines split by hand and JSON.parse for each
// chunk.
import { main, add, countDelta, SYSTEM, TOOL_DESCRIPTION } from './harness.mjs';

const tools = [{ type: 'function', function: { name: 'add', description: TOOL_DESCRIPTION, parameters: {
  type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] } } }];

// respond sends the messages and returns the text and the tool call of the response.
async function respond(base, model, messages) {
  const response = await fetch(base + '/v1/chat/completions', { method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, stream: true, tools, messages }) });
  const decoder = new TextDecoder();
  let text = '', call = null, rest = '';
  for await (const bytes of response.body) {
    rest += decoder.decode(bytes, { stream: true });
    for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end);
      rest = rest.slice(end + 1);
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const delta = JSON.parse(line.slice(6)).choices[0]?.delta;
      if (delta?.content) { text += delta.content; countDelta(); }
      for (const t of delta?.tool_calls ?? []) {
        call ??= { id: t.id, type: 'function', function: { name: t.function.name, arguments: '' } };
        call.function.arguments += t.function.arguments ?? '';
      }
    }
  }
  return { text, call };
}

await main(async (base, model) => {
  const messages = [{ role: 'system', content: SYSTEM }];
  return {
    async run(prompt) {
      messages.push({ role: 'user', content: prompt });
      for (;;) {
        const { text, call } = await respond(base, model, messages);
        messages.push({ role: 'assistant', content: text, ...(call ? { tool_calls: [call] } : {}) });
        if (!call) return text;
        const { a, b } = JSON.parse(call.function.arguments);
        messages.push({ role: 'tool', tool_call_id: call.id, content: add(a, b) });
      }
    },
  };
});
