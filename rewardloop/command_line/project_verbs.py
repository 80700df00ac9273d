"""`rewardloop projects` and `tasks`."""

from argparse import Namespace
from itertools import islice

from rewardloop.answers import Project
from rewardloop.command_line import logins
from rewardloop.command_line.terminal import Terminal, one_line


def list_projects(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        found = client.projects(archived=options.archived)
        columns = ("project", "name", "role", "complete", "tasks")
        terminal.rows(columns, ((project, _cells(project)) for project in found))
    return 0


def _cells(project: Project) -> list[object]:
    progress = project.progress
    counts = [progress.complete, progress.tasks] if progress else ["", ""]
    return [project.slug, project.name, project.own.role if project.own else "", *counts]


def show(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        project = client.project(options.project)
    terminal.data(project)
    for name, value in project.raw.items():
        terminal.say(f"{one_line(name)}: {one_line(value, 500)}")
    return 0


def create(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        project = client.create_project(options.project, options.name, **dict(options.set))
    terminal.data(project)
    terminal.say(f"The project {project.slug} is there. Import tasks: rewardloop import {project.slug} FILE")
    return 0


def tasks(options: Namespace, terminal: Terminal) -> int:
    with logins.client(options.url) as client:
        found = client.tasks(options.project, state=options.state, q=options.search)
        shown = islice(found, options.limit or None)
        columns = ("task", "state", "responses", "last message")
        terminal.rows(
            columns,
            (
                (
                    task,
                    [
                        task.id,
                        task.state,
                        len(task.responses),
                        task.conversation[-1].content if task.conversation else "",
                    ],
                )
                for task in shown
            ),
        )
    return 0
