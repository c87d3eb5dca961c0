"""Tool calls as model families write them into text, after the formats they document.

Each shows a call of `search` with the query "Osk", in its family's form.
"""

BAR, SEP = "\uff5c", "\u2581"
JSON_CALL = '{"name": "search", "arguments": {"query": "Osk"}}'

DIALECTS = {
    # Nous Hermes 2 Pro, Qwen 2.5 and 3: the Hermes function calling format
    "hermes": f"<tool_call>\n{JSON_CALL}\n</tool_call>",
    "hermes parallel": "\n".join([f"<tool_call>\n{JSON_CALL}\n</tool_call>"] * 2),
    "hermes cut": '<tool_call>\n{"name": "search", "arguments": {"query": "Os',
    "hermes inside a reply": f"Let me look it up.\n\n<tool_call>\n{JSON_CALL}\n</tool_call>",
    # Qwen3-Coder: XML inside the same tag
    "qwen3 coder": (
        "<tool_call>\n<function=search>\n<parameter=query>\nOsk\n</parameter>\n</function>\n"
        "</tool_call>"
    ),
    "qwen3 coder without the tag": (
        "<function=search>\n<parameter=query>\nOsk\n</parameter>\n</function>"
    ),
    # Seed-OSS, MiniMax M2, LongCat: the same ideas with tags of their own
    "seed oss": (
        "<seed:tool_call>\n<function=search>\n<parameter=query>Osk</parameter>\n</function>\n"
        "</seed:tool_call>"
    ),
    "minimax m2": (
        '<minimax:tool_call>\n<invoke name="search">\n<parameter name="query">Osk</parameter>\n'
        "</invoke>\n</minimax:tool_call>"
    ),
    "longcat": f"<longcat_tool_call>\n{JSON_CALL}\n</longcat_tool_call>",
    # Llama 3.1 to 4
    "llama 3.1 json": '{"name": "search", "parameters": {"query": "Osk"}}',
    "llama 3.1 json with type": (
        '{"type": "function", "name": "search", "parameters": {"query": "Osk"}}'
    ),
    "llama 3.1 tag": '<function=search>{"query": "Osk"}</function>',
    "llama 3.1 built-in": '<|python_tag|>search.call(query="Osk")',
    "llama 3.2 pythonic": '[search(query="Osk")]',
    "llama 3.2 pythonic parallel": '[search(query="Osk"), read(doc_id="d1")]',
    "llama 4 pythonic": '<|python_start|>[search(query="Osk")]<|python_end|>',
    # Mistral
    "mistral": f"[TOOL_CALLS] [{JSON_CALL}]",
    "mistral since v11": '[TOOL_CALLS]search[ARGS]{"query": "Osk"}',
    # DeepSeek
    "deepseek v3": (
        f"<{BAR}tool{SEP}calls{SEP}begin{BAR}><{BAR}tool{SEP}call{SEP}begin{BAR}>function"
        f'<{BAR}tool{SEP}sep{BAR}>search\n```json\n{{"query": "Osk"}}\n```'
        f"<{BAR}tool{SEP}call{SEP}end{BAR}><{BAR}tool{SEP}calls{SEP}end{BAR}>"
    ),
    "deepseek v3.1": (
        f"<{BAR}tool{SEP}calls{SEP}begin{BAR}><{BAR}tool{SEP}call{SEP}begin{BAR}>search"
        f'<{BAR}tool{SEP}sep{BAR}>{{"query": "Osk"}}<{BAR}tool{SEP}call{SEP}end{BAR}>'
    ),
    "deepseek v3.2": (
        f'<{BAR}DSML{BAR}function_calls>\n<{BAR}DSML{BAR}invoke name="search">\n'
        f'<{BAR}DSML{BAR}parameter name="query" string="true">Osk</{BAR}DSML{BAR}parameter>\n'
        f"</{BAR}DSML{BAR}invoke>\n</{BAR}DSML{BAR}function_calls>"
    ),
    # Kimi K2, GLM 4.5, Hunyuan, Jamba
    "kimi k2": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0"
        '<|tool_call_argument_begin|>{"query": "Osk"}<|tool_call_end|><|tool_calls_section_end|>'
    ),
    "glm 4.5": (
        "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>Osk</arg_value>\n</tool_call>"
    ),
    "hunyuan, jamba": f"<tool_calls>[{JSON_CALL}]</tool_calls>",
    # gpt-oss: the harmony format
    "gpt-oss": (
        "<|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>"
        '{"query": "Osk"}<|call|>'
    ),
    "gpt-oss, recipient first": (
        "<|start|>assistant to=functions.search<|channel|>commentary json<|message|>"
        '{"query": "Osk"}'
    ),
    # Granite, InternLM, Phi-4 mini, Command R, Nemotron, OLMo 3
    "granite": f"<|tool_call|>[{JSON_CALL}]",
    "internlm": (
        '<|action_start|><|plugin|>\n{"name": "search", "parameters": {"query": "Osk"}}'
        "<|action_end|>"
    ),
    "phi 4 mini": f"functools[{JSON_CALL}]",
    "command r": (
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": '
        '{"query": "Osk"}}]<|END_ACTION|>'
    ),
    "command r, in a block": (
        'Action:\n```json\n[{"tool_name": "search", "parameters": {"query": "Osk"}}]\n```'
    ),
    "nemotron": f"<TOOLCALL>[{JSON_CALL}]</TOOLCALL>",
    "olmo 3": '<function_calls>\nsearch(query="Osk")\n</function_calls>',
    # Gemma
    "gemma tool_code": '```tool_code\nsearch(query="Osk")\n```',
    "gemma tool_code, printed": '```tool_code\nprint(search(query="Osk"))\n```',
    "functiongemma": (
        "<start_function_call>call:search{query:<escape>Osk<escape>}<end_function_call>"
    ),
    "gemma 4": '<|tool_call>call:search{query:<|"|>Osk<|"|>}<tool_call|>',
    # LFM 2, Apertus, Step 3
    "lfm 2": '<|tool_call_start|>[search(query="Osk")]<|tool_call_end|>',
    "apertus": '<|tools_prefix|>[{"search": {"query": "Osk"}}]<|tools_suffix|>',
    "step 3": (
        '<steptml:invoke name="search">\n<steptml:parameter name="query">Osk'
        "</steptml:parameter>\n</steptml:invoke>"
    ),
    # XML of prompts: Claude's, and the MCP tags of Cline, Roo and MiroThinker
    "claude xml": (
        '<function_calls>\n<invoke name="search">\n<parameter name="query">Osk</parameter>\n'
        "</invoke>\n</function_calls>"
    ),
    "mcp": (
        "<use_mcp_tool>\n<server_name>tools</server_name>\n<tool_name>search</tool_name>\n"
        '<arguments>\n{"query": "Osk"}\n</arguments>\n</use_mcp_tool>'
    ),
    # JSON and text of agent frameworks
    "fenced json": f"```json\n{JSON_CALL}\n```",
    "fenced json after words": f"I will search.\n\n```json\n{JSON_CALL}\n```",
    "openai's own form": (
        '{"tool_calls": [{"id": "call_1", "type": "function", "function": '
        '{"name": "search", "arguments": "{\\"query\\": \\"Osk\\"}"}}]}'
    ),
    "react": "Thought: look it up\nAction: search\nAction Input: Osk",
}

QUOTED = {
    "a tag in code": "Hermes models wrap calls in `<tool_call>` tags.",
    "a tag in words": "The <tool_call> tag stands before, the </tool_call> tag after.",
    "a call in quotation marks": 'It wrote "<tool_call>{}</tool_call>" and stopped.',
    "a call in a block quote": f"> <tool_call>{JSON_CALL}</tool_call>\n\nThat was its reply.",
    "a call in an xml block": f"```xml\n<tool_call>{JSON_CALL}</tool_call>\n```",
    "a token in code": "`[TOOL_CALLS]` and `<|python_tag|>` are special tokens.",
    "functools": "In Python, functools has a cache.",
    "action": "Action: none is needed.",
    "a channel": "The channel to=functions.search is open.",
    "data": '```json\n{"name": "Osk", "population": 12}\n```',
    "an answer": '{"answer": 42, "tool_calls": []}',
    "mathematics": "f(2) = 4, sin(30) is 1/2, and search is O(log n).",
    "a list": "[1, 2, 3]",
}
"""Texts that speak of calls and make none."""
